"""mam beside other programs that run agents in tmux: the same work on each, with a fake agent."""
