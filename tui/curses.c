#include "tui/curses.h"

#include <curses.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

/* What signal handlers need is plain data that is complete before they are set. */
static SCREEN *terminal; /* NULL: not open */
static struct termios tty_before;
static volatile sig_atomic_t ended_by; /* a signal that asks the program to end */
static char restore[128];              /* sequences that put the screen back */
static size_t restore_size;

enum { PASTE_BEGIN = KEY_MAX + 1, PASTE_END };

static const char MODES_ON[] = "\033[?2004h", MODES_OFF[] = "\033[?2004l";

static void emit(const char *text, size_t size) {
    while (size > 0) {
        ssize_t n = write(STDOUT_FILENO, text, size);
        if (n <= 0)
            return;
        text += n;
        size -= (size_t)n;
    }
}

/* ---- signals ---- */

static const int ENDING[] = {SIGINT, SIGTERM, SIGHUP};
static const int CRASHES[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
enum {
    ENDINGS = sizeof ENDING / sizeof ENDING[0],
    CRASH_KINDS = sizeof CRASHES / sizeof CRASHES[0]
};
static struct sigaction before_ending[ENDINGS], before_crash[CRASH_KINDS];

static void on_ending(int signal_number) { ended_by = signal_number; }

/* Only calls that are safe in a handler; what handled the signal before does so again. */
static void on_crash(int signal_number) {
    emit(restore, restore_size);
    tcsetattr(STDIN_FILENO, TCSANOW, &tty_before);
    for (size_t i = 0; i < CRASH_KINDS; i++)
        if (CRASHES[i] == signal_number)
            sigaction(signal_number, &before_crash[i], NULL);
    raise(signal_number);
}

static void catch_signals(void) {
    /* No SA_RESTART: a key that is waited for is given up. */
    struct sigaction ending = {.sa_handler = on_ending}, crash = {.sa_handler = on_crash};
    sigemptyset(&ending.sa_mask);
    sigemptyset(&crash.sa_mask);
    for (size_t i = 0; i < ENDINGS; i++)
        sigaction(ENDING[i], &ending, &before_ending[i]);
    for (size_t i = 0; i < CRASH_KINDS; i++)
        sigaction(CRASHES[i], &crash, &before_crash[i]);
}

static void release_signals(void) {
    for (size_t i = 0; i < ENDINGS; i++)
        sigaction(ENDING[i], &before_ending[i], NULL);
    for (size_t i = 0; i < CRASH_KINDS; i++)
        sigaction(CRASHES[i], &before_crash[i], NULL);
}

/* ---- opening and closing ---- */

/* A capability's sequence without its delays ("$<5>"), which are for terminals made of glass. */
static void keep_sequence(const char *text) {
    bool known = text && text != (const char *)-1; /* what tigetstr gives where there is none */
    for (; known && *text && restore_size + 1 < sizeof restore; text++) {
        if (text[0] == '$' && text[1] == '<') {
            const char *end = strchr(text, '>');
            if (!end)
                return;
            text = end;
        } else {
            restore[restore_size++] = *text;
        }
    }
}

static void keep_restore(void) {
    restore_size = 0;
    keep_sequence(MODES_OFF);
    keep_sequence("\033[?1000l\033[?1006l"); /* the mouse */
    keep_sequence(tigetstr("sgr0"));
    keep_sequence(tigetstr("cnorm"));
    keep_sequence(tigetstr("rmkx"));
    keep_sequence(tigetstr("rmcup"));
}

void vp_curses_close(void) {
    if (!terminal)
        return;
    mousemask(0, NULL);
    emit(MODES_OFF, sizeof MODES_OFF - 1);
    endwin();
    delscreen(terminal);
    terminal = NULL;
    release_signals();
}

static void set_modes(void) {
    raw();
    noecho();
    nonl();
    keypad(stdscr, TRUE);
    curs_set(0);
    emit(MODES_ON, sizeof MODES_ON - 1);
}

static enum vp_status open_terminal(struct vp_ctx *ctx, struct vp_ui *ui) {
    static bool registered;
    enum { ESC_MS = 25 };
    /* Characters alone; figures stay as they are in every language. */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        if (ui->utf8 && !setlocale(LC_CTYPE, "C.UTF-8"))
            ui->utf8 = false;
    tcgetattr(STDIN_FILENO, &tty_before);
    restore_size = 0;
    catch_signals(); /* before curses, which else would do so in its own way */
    terminal = newterm(NULL, stdout, stdin);
    if (!terminal) {
        release_signals();
        const char *term = getenv("TERM");
        vp_diag_add(ctx->diags, VP_D_NO_TERMINAL, NULL, "the terminal '%s' is not known here",
                    term ? term : "");
        vp_diag_hint(ctx->diags, "set TERM, as TERM=xterm; --dump prints the screen without one");
        return VP_ERR_ENV;
    }
    keep_restore();
    if (!registered)
        atexit(vp_curses_close);
    registered = true;
    set_escdelay(ESC_MS);
    set_modes();
    define_key("\033[200~", PASTE_BEGIN);
    define_key("\033[201~", PASTE_END);
    return VP_OK;
}

/* ---- drawing ---- */

static void set_colours(const struct vp_ui *ui) {
    if (!has_colors())
        return;
    for (int i = 0; i < VP_LOOK_COUNT; i++) {
        struct vp_look look = vp_theme_look(ui->theme, (enum vp_tui_style)i);
        init_pair((short)(i + 1), (short)look.colour, -1);
    }
}

static void set_look(const struct vp_ui *ui, const struct vp_cell *cell) {
    struct vp_look look = vp_theme_look(ui->theme, (enum vp_tui_style)cell->style);
    attr_t attributes = (look.bold ? A_BOLD : 0) | (look.dim ? A_DIM : 0) |
                        (look.underline ? A_UNDERLINE : 0) |
                        (look.reverse != cell->reverse ? A_REVERSE : 0);
    attr_set(attributes, has_colors() ? (short)(cell->style + 1) : 0, NULL);
}

/* Runs of cells that look the same; curses sends what differs from the frame before. */
static void blit(const struct vp_ui *ui, const struct vp_cells *cells) {
    enum { RUN = 256 };
    wchar_t run[RUN];
    for (int y = 0; y < cells->height; y++) {
        const struct vp_cell *line = cells->cell + (size_t)y * (size_t)cells->width;
        for (int x = 0; x < cells->width;) {
            int from = x, n = 0;
            while (x < cells->width && n < RUN && line[x].style == line[from].style &&
                   line[x].reverse == line[from].reverse) {
                if (line[x].code)
                    run[n++] = (wchar_t)line[x].code;
                x++;
            }
            set_look(ui, &line[from]);
            mvaddnwstr(y, from, run, n);
        }
    }
}

static void show(struct vp_ui *ui) {
    static enum vp_theme_name coloured = VP_THEME_COUNT;
    if (ui->theme != coloured)
        set_colours(ui);
    coloured = ui->theme;
    if (ui->redraw)
        clear();
    else
        erase();
    ui->redraw = false;
    blit(ui, vp_ui_draw(ui));
    refresh();
}

/* ---- the clipboard ---- */

/* The terminal's own (OSC 52), which works over ssh too, where the terminal allows it. */
static void copy_text(const char *text) {
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)text;
    size_t left = strlen(text);
    emit("\033]52;c;", 7);
    for (; left > 0; p += 3, left = left > 3 ? left - 3 : 0) {
        unsigned bits =
            (unsigned)p[0] << 16 | (left > 1 ? (unsigned)p[1] << 8 : 0) | (left > 2 ? p[2] : 0);
        char four[4] = {DIGITS[bits >> 18], DIGITS[bits >> 12 & 63],
                        left > 1 ? DIGITS[bits >> 6 & 63] : '=',
                        left > 2 ? DIGITS[bits & 63] : '='};
        emit(four, 4);
    }
    emit("\a", 1);
}

/* ---- keys ---- */

static uint32_t special_key(wint_t c) {
    static const struct {
        int curses;
        uint32_t code;
    } KEYS[] = {
        {KEY_UP, VP_KEY_UP},
        {KEY_DOWN, VP_KEY_DOWN},
        {KEY_LEFT, VP_KEY_LEFT},
        {KEY_RIGHT, VP_KEY_RIGHT},
        {KEY_HOME, VP_KEY_HOME},
        {KEY_END, VP_KEY_END},
        {KEY_PPAGE, VP_KEY_PAGE_UP},
        {KEY_NPAGE, VP_KEY_PAGE_DOWN},
        {KEY_IC, VP_KEY_INSERT},
        {KEY_DC, VP_KEY_DELETE},
        {KEY_BTAB, VP_KEY_BACKTAB},
        {KEY_ENTER, VP_KEY_ENTER},
        {KEY_BACKSPACE, VP_KEY_BACKSPACE},
        {PASTE_BEGIN, VP_KEY_PASTE_BEGIN},
        {PASTE_END, VP_KEY_PASTE_END},
    };
    for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
        if ((int)c == KEYS[i].curses)
            return KEYS[i].code;
    if ((int)c >= KEY_F(1) && (int)c <= KEY_F(12))
        return VP_KEY_F1 + (uint32_t)((int)c - KEY_F(1));
    return VP_KEY_OTHER;
}

static struct vp_key mouse_key(void) {
    MEVENT event;
    if (getmouse(&event) != OK)
        return (struct vp_key){0};
    struct vp_key key = {.x = event.x, .y = event.y};
    if (event.bstate & BUTTON4_PRESSED)
        key.code = VP_KEY_WHEEL_UP;
    else if (event.bstate & BUTTON5_PRESSED)
        key.code = VP_KEY_WHEEL_DOWN;
    else if (event.bstate & (BUTTON1_PRESSED | BUTTON1_CLICKED))
        key.code = VP_KEY_CLICK;
    return key;
}

/* False: none came within that time (-1: for ever), or a signal did. */
static bool next_key(struct vp_key *out, int wait_ms) {
    wint_t c;
    timeout(wait_ms);
    int kind = get_wch(&c);
    *out = (struct vp_key){0};
    if (kind == ERR)
        return false;
    if (kind != KEY_CODE_YES)
        out->code = c == '\n' || c == '\r' ? VP_KEY_ENTER
                    : c == '\b'            ? VP_KEY_BACKSPACE
                                           : (uint32_t)c;
    else if (c == KEY_MOUSE)
        *out = mouse_key();
    else if (c == KEY_RESIZE)
        *out = (struct vp_key){.code = VP_KEY_RESIZE, .x = COLS, .y = LINES};
    else
        out->code = special_key(c);
    return out->code != VP_KEY_NONE;
}

static void set_mouse(bool on) {
    mouseinterval(0);
    mousemask(on ? BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED : 0, NULL);
}

static void suspend(const struct vp_ui *ui) {
    struct sigaction stop = {.sa_handler = SIG_DFL}, before;
    sigemptyset(&stop.sa_mask);
    set_mouse(false);
    emit(MODES_OFF, sizeof MODES_OFF - 1);
    endwin();
    sigaction(SIGTSTP, &stop, &before);
    raise(SIGTSTP);
    sigaction(SIGTSTP, &before, NULL);
    refresh();
    set_modes();
    set_mouse(ui->mouse);
}

/* ---- the loop ---- */

static void serve_wishes(struct vp_ui *ui, bool *mouse) {
    if (ui->suspend) {
        ui->suspend = false;
        suspend(ui);
        ui->redraw = true;
        vp_ui_key(ui, (struct vp_key){.code = VP_KEY_RESIZE, .x = COLS, .y = LINES});
    }
    if (ui->mouse != *mouse)
        set_mouse(ui->mouse);
    *mouse = ui->mouse;
    if (ui->copy && ui->text)
        copy_text(ui->text);
    ui->copy = false;
}

/* Keys that wait are all taken before the next frame. While something is computed beside them, it
 * is looked at again and again; a frame is due when that changes what there is to see. */
static void take_keys(struct vp_ui *ui, bool *mouse) {
    enum { LOOK_MS = 20 };
    bool pending = vp_session_pending(ui->session) != NULL;
    struct vp_key key;
    while (!next_key(&key, pending ? LOOK_MS : -1))
        if (!pending || ended_by || vp_ui_poll(ui))
            return;
    do {
        vp_ui_key(ui, key);
        serve_wishes(ui, mouse);
    } while (!ui->quit && !ended_by && next_key(&key, 0));
}

enum vp_status vp_curses_run(struct vp_ctx *ctx, struct vp_ui *ui) {
    bool mouse = ui->mouse;
    enum vp_status status = open_terminal(ctx, ui);
    if (status != VP_OK)
        return status;
    ended_by = 0;
    if (has_colors()) {
        start_color();
        use_default_colors();
    } else {
        ui->theme = VP_THEME_MONO;
        ui->colour_off = true;
    }
    set_mouse(mouse);
    vp_ui_key(ui, (struct vp_key){.code = VP_KEY_RESIZE, .x = COLS, .y = LINES});
    while (!ui->quit && !ended_by) {
        show(ui);
        take_keys(ui, &mouse);
    }
    int signal_number = ended_by;
    vp_curses_close();
    if (signal_number)
        raise(signal_number);
    return VP_OK;
}
