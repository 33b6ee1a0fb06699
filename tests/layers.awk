# awk -f tests/layers.awk docs/layers.txt FILE...
#
# Holds the C files to the table in docs/layers.txt and to three more rules of the tree:
#   - a file's base name is unique (x.c and x.h in one folder count once);
#   - a quoted include is written from the root of the tree;
#   - planner/ does not print.
# Prints file:line of each violation and ends with 1 when there was one.

# The layer of a path: the folder under planner/, else the folder at the top; "" for what is in no layer.
function layer_of(path,   part, n)
{
    n = split(path, part, "/")
    if (part[1] == "planner")
        return n > 2 ? part[2] : "planner"
    if (part[1] ~ /^(reports|api|cli|tui|probe)$/)
        return part[1]
    return ""
}

function complain(message)
{
    printf "%s:%d: %s\n", FILENAME, FNR, message
    failed = 1
}

# The line without comments, and with its strings and character constants emptied. `in_comment` carries a
# comment over to the next line.
function code_of(line,   code, found)
{
    code = ""
    for (;;) {
        if (in_comment) {
            if (!match(line, /\*\//))
                return code
            line = substr(line, RSTART + 2)
            in_comment = 0
        }
        if (!match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)*'|\/\/|\/\*/))
            return code line
        found = substr(line, RSTART, 2)
        code = code substr(line, 1, RSTART - 1) " "
        if (found == "//")
            return code
        line = substr(line, RSTART + RLENGTH)
        in_comment = (found == "/*")
    }
}

function check_include(line,   path, target, own)
{
    path = line
    sub(/^[ \t]*#[ \t]*include[ \t]*/, "", path)
    if (match(path, /^<[^>]*>/)) {
        path = substr(path, 1, RLENGTH)
        if (path in only && only[path] != FILENAME)
            complain("only " only[path] " may include " path)
        return
    }
    own = layer_of(FILENAME)
    if (own == "" || !match(path, /^"[^"]*"/))
        return
    path = substr(path, 2, RLENGTH - 2)
    if (path == "include/vramplan.h")
        return
    target = layer_of(path)
    if (target == "")
        complain("\"" path "\" is not written from the root of the tree, or is outside the layers")
    else if (target != own && !((own, target) in allowed))
        complain("layer " own " may not include \"" path "\"; it may include: " text[own])
}

# The table. A line is "name: names" or "<header>: file".
FILENAME == ARGV[1] {
    if ($0 ~ /^(#|[ \t]*$)/)
        next
    name = $1
    sub(/:$/, "", name)
    if (name ~ /^</) {
        only[name] = $2
        next
    }
    text[name] = name
    for (i = 2; i <= NF; i++) {
        allowed[name, $i] = 1
        text[name] = text[name] " " $i
    }
    next
}

FNR == 1 {
    in_comment = 0
    own_layer = layer_of(FILENAME)
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    base = substr(FILENAME, length(folder) + 2)
    if (own_layer != "" && !(own_layer in text))
        complain("layer " own_layer " is not in " ARGV[1])
    if (own_layer != "" && sub(/\.[ch]$/, "", base)) {
        if (base in home && home[base] != folder)
            complain("the name " base " is taken by a file in " home[base] "/")
        home[base] = folder
    }
}

!in_comment && /^[ \t]*#[ \t]*include/ { check_include($0) }

{
    code = code_of($0)
    if (FILENAME ~ /^planner\// &&
        (code ~ /(^|[^A-Za-z0-9_.>])(printf|vprintf|puts|putchar)[ \t]*\(/ ||
         code ~ /(^|[^A-Za-z0-9_])stdout([^A-Za-z0-9_]|$)/))
        complain("planner/ does not print")
}

END { exit failed }
