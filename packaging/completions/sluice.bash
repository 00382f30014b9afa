# bash completion for sluice; the program itself says what may follow.
# shellcheck shell=bash
_sluice() {
	local word previous='' words=() glued='' candidate
	# bash takes --output=json for three words; the program wants one.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
		if [ ${#words[@]} -gt 0 ] && { [ "$word" = = ] || [ "$previous" = = ]; }; then
			words[-1]+=$word
		else
			words+=("$word")
		fi
		previous=$word
	done
	case ${words[-1]} in
	--*=*) glued=${words[-1]%%=*}= ;;
	esac
	COMPREPLY=()
	while IFS=$'\t' read -r candidate _; do
		COMPREPLY+=("${candidate#"$glued"}")
	done < <("${COMP_WORDS[0]}" --complete "${words[@]}" 2>/dev/null)
}
complete -o default -F _sluice sluice kubectl-sluice
