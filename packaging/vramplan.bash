# Completion of vramplan for bash. Made by: vramplan help --completion

# Names of gpus, models or engines, as the program knows them.
_vramplan_list() {
    "${COMP_WORDS[0]}" list "$1" --format csv 2>/dev/null |
        sed -e 1d -e 's/,.*//'
}

_vramplan() {
    local current=${COMP_WORDS[COMP_CWORD]}
    local previous=${COMP_WORDS[COMP_CWORD - 1]}
    local command=plan words= files=no value=yes
    local commands='plan explain import list help fit checkpoint timeline simulate sweep merge calibrate probe device import-log doctor gate diff report tui'

    # "--format=json" comes as three words.
    if [[ $current == = ]]; then
        current=
    elif [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if ((COMP_CWORD > 1)) && [[ " $commands " == *" ${COMP_WORDS[1]} "* ]]; then
        command=${COMP_WORDS[1]}
    fi

    case "$command $previous" in
    *" --gpu")
        words=$(_vramplan_list gpus)
        ;;
    *" --fits-on")
        words=$(_vramplan_list gpus)
        ;;
    *" --count")
        ;;
    *" --engine")
        words=$(_vramplan_list engines)
        ;;
    *" --tp")
        ;;
    *" --pp")
        ;;
    *" --weights")
        ;;
    *" --kv-cache")
        ;;
    *" --context")
        ;;
    *" --concurrency")
        ;;
    *" --batch")
        ;;
    *" --seq")
        ;;
    *" --calibration")
        files=yes
        ;;
    *" --from-command")
        ;;
    *" --set")
        ;;
    *" --chain")
        files=yes
        ;;
    *" --budget")
        ;;
    *" --class")
        words='a b d e c0 c pp'
        ;;
    *" --inflight")
        ;;
    "plan --format" | "explain --format" | "import --format" | "list --format" | "fit --format" | "checkpoint --format" | "timeline --format" | "simulate --format" | "sweep --format" | "calibrate --format" | "probe --format" | "device --format" | "import-log --format" | "doctor --format" | "diff --format" | "report --format" | "tui --format")
        words='text json csv markdown'
        ;;
    "gate --format")
        words='text json junit sarif gitlab markdown'
        ;;
    *" --base")
        ;;
    *" --base-dir")
        ;;
    "gate --only")
        ;;
    *" --date")
        ;;
    *" --at-risk")
        words='inconclusive fail warn likely'
        ;;
    *" --json")
        files=yes
        ;;
    *" --junit")
        files=yes
        ;;
    *" --sarif")
        files=yes
        ;;
    *" --gitlab")
        files=yes
        ;;
    "gate --markdown")
        files=yes
        ;;
    *" --metrics")
        files=yes
        ;;
    *" --annotations")
        words='github none'
        ;;
    *" --reason")
        ;;
    *" --frontier")
        files=yes
        ;;
    *" --maximize")
        words='context layers slots concurrency batch'
        ;;
    *" --minimize")
        words='gpus cost'
        ;;
    *" --price")
        ;;
    *" --slo")
        ;;
    *" --keep")
        ;;
    *" --phase")
        ;;
    *" --fit-target")
        ;;
    *" --scenario")
        files=yes
        ;;
    *" --measured-out")
        files=yes
        ;;
    *" --profile-out")
        files=yes
        ;;
    *" --profile")
        files=yes
        ;;
    *" --check")
        ;;
    *" --choose-shapes")
        ;;
    *" --serving-class")
        ;;
    *" --release")
        ;;
    *" --source")
        ;;
    *" --vary")
        ;;
    *" --where")
        ;;
    *" --objectives")
        ;;
    *" --trace")
        files=yes
        ;;
    *" --arrivals")
        ;;
    *" --duration")
        ;;
    *" --warmup")
        ;;
    *" --seeds")
        ;;
    *" --seed")
        ;;
    *" --rate-scale")
        ;;
    *" --time-scale")
        ;;
    *" --window")
        ;;
    *" --shard")
        ;;
    *" --threads")
        ;;
    *" --what-if")
        ;;
    *" --backend")
        words='hip cuda cpu fake'
        ;;
    "probe --only")
        ;;
    *" --verify")
        ;;
    *" --samples")
        ;;
    *" --stage")
        ;;
    *" --plot")
        files=yes
        ;;
    *" --chart")
        ;;
    *" --chrome-trace")
        files=yes
        ;;
    *" --html")
        files=yes
        ;;
    "report --markdown")
        files=yes
        ;;
    *" --csv")
        files=yes
        ;;
    *" --keys")
        files=yes
        ;;
    *" --size")
        ;;
    *" --theme")
        words='dark light mono'
        ;;
    *" --output" | *" -o")
        files=yes
        ;;
    *" --color")
        words='auto always never'
        ;;
    *" --emit")
        ;;
    *)
        value=no
        ;;
    esac
    if [[ $value == no ]]; then
        case $command in
        plan)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --explain --format --plot --chart --output --color --emit --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        explain)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --plot --chart --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        import)
            words='--from-command --format --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        list)
            words='--fits-on --count --engine --weights --kv-cache --context --concurrency --set --format --output --color --verbose --help --version'
            [[ $current == -* ]] || words='gpus models engines'
            ;;
        help)
            words='--output --color --verbose --help --version'
            [[ $current == -* ]] || words=$commands
            ;;
        fit)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --maximize --minimize --price --slo --keep --pack --phase --fit-target --trace --arrivals --duration --warmup --seeds --seed --rate-scale --time-scale --shard --threads --plot --output --color --emit --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        checkpoint)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --chain --budget --class --inflight --format --frontier --plot --output --color --emit --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        timeline)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --stage --plot --chrome-trace --csv --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        simulate)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --slo --trace --arrivals --duration --warmup --seeds --seed --rate-scale --time-scale --window --threads --plot --chrome-trace --csv --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        sweep)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --vary --where --latency --pareto --objectives --shard --threads --restart --plot --chart --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        merge)
            words='--pareto --objectives --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        calibrate)
            words='--gpu --format --profile --check --choose-shapes --serving-class --release --source --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        probe)
            words='--gpu --format --backend --quick --only --list --verify --samples --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        device)
            words='--gpu --format --what-if --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        import-log)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --scenario --measured-out --profile-out --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        doctor)
            words='--gpu --format --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        gate)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --base --base-dir --only --date --at-risk --json --junit --sarif --gitlab --markdown --metrics --annotations --init --self-test --update --reason --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        diff)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        report)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --html --markdown --csv --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        tui)
            words='--gpu --count --engine --tp --pp --weights --kv-cache --context --concurrency --batch --seq --calibration --from-command --set --format --keys --size --dump --ascii --no-mouse --theme --output --color --verbose --help --version'
            [[ $current == -* ]] || { words=$(_vramplan_list models); files=yes; }
            ;;
        esac
        if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then
            words="$commands $words"
        fi
    fi

    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    if [[ $files == yes ]]; then
        compopt -o filenames
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$current")
    fi
}

complete -F _vramplan vramplan
