/* A folder /proc with the processes of the test instead of the host's. */
typedef struct folder DIR;

struct dirent {
    char d_name[32];
};

extern DIR *opendir(const char *name);
extern struct dirent *readdir(DIR *folder);
extern int closedir(DIR *folder);
