# Prints what an interactive zsh makes of each line when Tab is pressed behind it.
#
#   zsh -f complete.zsh FOLDER LINE…
#
# FOLDER has the function _kwab. The shell runs on a terminal of its own; a widget prints the line once it is completed,
# so nothing here waits for a while and hopes.
zmodload zsh/zpty
folder=$1
shift
zpty shell zsh -f -i
shown() { # Waits for text between the marks, and leaves it in $line.
  zpty -r shell line $'*\x01*\x02*' || exit 1
  line=${${line##*$'\x01'}%%$'\x02'*}
}
zpty -w shell "fpath=(${(q)folder} \$fpath); autoload -U compinit; compinit -u -D; unsetopt beep; PS1=; \
completed() { zle complete-word; print -rn -- \$'\\x01'\$BUFFER\$'\\x02'; BUFFER=; }; zle -N completed; \
bindkey '^I' completed; print -n \$'\\x01'ready\$'\\x02'"
shown
for asked; do
  zpty -n -w shell "$asked"$'\t'
  shown
  print -r -- "$line"
done
zpty -d shell
