# Completion of `fairall` for bash: eval "$(fairall completion bash)"
_fairall() {
    local line=${COMP_LINE:0:COMP_POINT} word candidate cut= IFS=$' \t\n'
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[-1]}
    # bash replaces what is after =, a character of COMP_WORDBREAKS, and not the whole word.
    [[ $COMP_WORDBREAKS == *=* && $word == *=* ]] && cut=${word%%=*}=
    COMPREPLY=()
    while IFS= read -r candidate; do
        [[ $candidate == *[=.] ]] && compopt -o nospace 2> /dev/null
        COMPREPLY+=("${candidate#"$cut"}")
    done < <("${COMP_WORDS[0]}" completion words -- "${words[@]:1}" 2> /dev/null)
}
complete -o default -F _fairall fairall
