/**
 * Shell that keeps a sandbox open for commands that outlive the agent server. Arguments: a named pipe (the line), a file that reports the
 * end, then the command line of bubblewrap. Standard input ends with the agent server.
 *
 * A second shell, the watch, waits for the end of the agent server, then for the end of all keepers, which hold the line, and then ends the
 * sandbox. A sandbox also ends with this shell, and with its own first process.
 *
 * A command can end bubblewrap while processes of the sandbox still run. So the file is created only after the end of the first process,
 * which the kernel lets end last. If its process id is unknown, the file is not created, and the end is unknown.
 *
 * `read` fails for a list of children, which has no newline, but sets its variables. While the sandbox is open, no program is started.
 */
export const sandboxScript = `
exec 6<&0 </dev/null
line=$1 end=$2 inner= started=
shift 2
mkfifo -m 600 "$line" || exit
exec 4<>"$line" 5<"$line" 4>&-
trap '' HUP INT TERM
"$@" 5<&- 6<&- &
sandbox=$!
children=/proc/$sandbox/task/$sandbox/children
(
  exec >/dev/null 2>&1
  read -r _ <&6
  read -r _ <&5
  read -r inner _ <"$children"
  kill -KILL "$inner" || kill -KILL $sandbox
) &
watch=$!
exec 5<&- 6<&- >/dev/null 2>&1
until read -r inner _ <"$children"; [ -n "$inner" ]; do
  [ -e "$children" ] || break
  sleep 0.01
done
[ -n "$inner" ] && read -r facts <"/proc/$inner/stat" && set -- \${facts##*)} && shift 19 && started=$1
wait $sandbox
while [ -n "$started" ] && read -r facts <"/proc/$inner/stat"; do
  set -- \${facts##*)}
  [ "$1" = Z ] && break
  shift 19
  [ "$1" = "$started" ] || break
  sleep 0.01
done
[ -z "$started" ] || : >"$end"
kill -KILL $watch
`;
