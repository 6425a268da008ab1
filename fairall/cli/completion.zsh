# Completion of `fairall` for zsh: eval "$(fairall completion zsh)"
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
_fairall() {
    local -a found
    found=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT-1]}" "$PREFIX" 2> /dev/null)}")
    found=(${found:#})
    if (( ! $#found )); then
        compset -P '*='
        _files
        return
    fi
    compadd -S '' -- ${(M)found:#*[=.]}
    compadd -- ${found:#*[=.]}
}
compdef _fairall fairall
