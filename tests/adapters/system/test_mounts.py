"""Which file system a path lies on."""

from __future__ import annotations

from mam.adapters.system import mounts

MOUNTINFO = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:26 / /mnt rw - nfs4 server:/x rw
31 30 0:27 / /mnt/local rw,relatime master:1 shared:7 - xfs /dev/sdb rw
32 22 0:28 / /media/my\040disk\134x\012y rw - fuse.sshfs me@there:/ rw
33 22 0:29 / /over rw - ext4 /dev/sdc rw
34 22 0:30 / /over rw - 9p share rw
damaged line
"""


class TestLinux:
    linux_mounts = mounts.parse_mountinfo(MOUNTINFO)

    def test_the_longest_mount_point_decides(self):
        assert mounts.filesystem_of("/home/x", self.linux_mounts) == "ext4"
        assert mounts.filesystem_of("/mnt", self.linux_mounts) == "nfs4"
        assert mounts.filesystem_of("/mnt/a", self.linux_mounts) == "nfs4"
        assert mounts.filesystem_of("/mnt/local/a", self.linux_mounts) == "xfs"

    def test_a_prefix_of_a_name_is_no_mount_point(self):
        assert mounts.filesystem_of("/mntx", self.linux_mounts) == "ext4"

    def test_escapes(self):
        assert mounts.filesystem_of("/media/my disk\\x\ny/a", self.linux_mounts) == "fuse.sshfs"

    def test_a_backslash_that_begins_no_escape_is_one(self):
        (mount,) = mounts.parse_mountinfo(b"32 22 0:28 / /a\\440b\\9\\ rw - ext4 x rw")
        assert mount == ("/a\\440b\\9\\", "ext4")

    def test_of_two_on_one_point_the_upper_counts(self):
        assert mounts.filesystem_of("/over/a", self.linux_mounts) == "9p"

    def test_nothing_known(self):
        assert mounts.filesystem_of("/x", []) is None


def test_macos():
    text = "/dev/disk1s1 on / (apfs, local, journaled)\n//me@host/s on /Volumes/a on b (smbfs, nodev)\n"
    parsed = mounts.parse_mount_output(text + "nonsense\n")
    assert parsed == [("/", "apfs"), ("/Volumes/a on b", "smbfs")]


def test_a_network_is_named_and_a_disk_is_not(monkeypatch, tmp_path):
    monkeypatch.setattr(mounts, "_linux_mounts", lambda: [("/", "ext4"), (str(tmp_path), "nfs4")])
    link = tmp_path.parent / "link-to-nfs"
    link.symlink_to(tmp_path)
    assert mounts.network_filesystem(str(tmp_path / "a")) == "nfs4"
    assert mounts.network_filesystem(str(link / "a")) == "nfs4"
    assert mounts.network_filesystem("/") is None


def test_this_machine_can_be_read():
    assert mounts._linux_mounts()
