/* The keys of the screen that is shown, from the rows of keys.def. */
#include "tui/ui.h"

/* One line of the list of keys; returns how many it took. */
static int help_row(struct vp_view view, int y, const struct vp_binding *row) {
    enum { KEYS = 16 };
    if (row->group) {
        vp_view_text(view, 0, y, VP_LOOK_STRONG, row->group);
        return 1;
    }
    vp_view_left(view, 2, y, KEYS - 1, VP_LOOK_KEY, row->keys);
    return vp_view_wrap(view, 2 + KEYS, y, view.width - KEYS - 3, 2, VP_LOOK_PLAIN, row->meaning);
}

void vp_ui_draw_help(struct vp_ui *ui, struct vp_view all) {
    size_t count;
    const struct vp_binding *row = vp_bindings(&count);
    struct vp_view box = vp_ui_over(all, all.width - 4, all.height - 4);
    const char *title =
        vp_arena_printf(&ui->frame, "keys of the screen '%s'", vp_screens[ui->screen].name);
    struct vp_view in =
        vp_view_box(box, VP_LOOK_EDGE, title, NULL, "Up, Down and PageDown scroll; Esc closes");
    int columns = in.width >= 140 ? 2 : 1, width = in.width / columns;
    int lines = 0;
    for (int drawn = 0; drawn < 2; drawn++) { /* measured, then drawn */
        int split = (lines + columns - 1) / columns;
        int most = split > in.height ? split - in.height : 0, y = 0;
        ui->page.row = drawn && ui->page.row > most ? most : ui->page.row;
        for (size_t i = 0; i < count; i++) {
            if (row[i].keys && !(row[i].screens >> ui->screen & 1))
                continue;
            int column = drawn && columns > 1 && y >= split ? 1 : 0;
            struct vp_view part =
                vp_view_part(in, 1 + column * width, 0, width - 2, drawn ? in.height : 0);
            y += help_row(part, y - column * split - ui->page.row, &row[i]);
        }
        lines = y;
    }
    vp_view_scrollbar(in, ui->page.row, (lines + columns - 1) / columns);
}
