/* What shim.c tells power_loss.c, which says what is lost. */
#include <sys/types.h>

enum change { MADE, MADE_FOLDER, LINKED, REMOVED, RENAMED, EXCHANGED };

struct loss_change {
    enum change kind;
    char *from, *to, *grave;
    mode_t bits;
    int was_there;
};

/* folder: where the files stay whose names are removed. */
void loss_begin(const char *folder, long seed);
void loss_before_data(int fd);
void loss_after_data(int fd);
void loss_after_flush(int fd, const char *path);
void loss_before_change(struct loss_change *change, enum change kind, const char *from, const char *to);
void loss_after_change(struct loss_change *change, int is_done);
void loss_of_power(void);
