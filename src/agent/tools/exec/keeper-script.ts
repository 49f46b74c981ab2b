/** Limit of the raw output of a command: above it, output that was read is removed, and output that cannot be read in time is skipped. */
export const maxRawBytes = 64 * 1024 * 1024;

/**
 * Watch of a keeper. It waits for the death of the agent server. From then until another server owns the command, it enforces the deadline
 * and limits the output. It starts no program before that. Contains no single quotes. Variables: `f`, `o`, `deadline` and `patience`, the
 * first four arguments of the keeper, and `keeper`, its process.
 */
const watchScript = `
trap "" HUP INT TERM
hasOwner() {
  read -r pid ticks <"$o" && kill -0 "$pid" || return 1
  [ -r "/proc/$pid/stat" ] || return 0
  read -r line <"/proc/$pid/stat"
  set -- \${line##*)}
  [ "$1" != Z ] && [ "\${20}" = "$ticks" ]
}
exec 4>&2 2>/dev/null >/dev/null
read -r _ <&6
trap "kill -KILL \\$pause; exit" USR1
left=$patience why=abandoned
while [ "$left" -gt 0 ]; do
  if [ "$deadline" -gt 0 ] && [ "$(date +%s)" -ge "$deadline" ]; then why=timedOut; break; fi
  sleep 1 &
  pause=$!
  wait $pause
  kill -0 -$keeper || exit
  if hasOwner; then left=$patience; continue; fi
  left=$((left - 1))
  if [ $(wc -c <"$f.out") -gt ${maxRawBytes} ]; then : >"$f.cut"; : >"$f.out"; fi
done
echo $why >&4
kill -TERM -$keeper
kill -CONT -$keeper
sleep 2
kill -KILL -$keeper
`;

/**
 * Shell that waits for a command, outlives the agent server, and reports the end. Arguments: prefix of the command's files, file of
 * the owner, deadline in seconds since the epoch (0: none), seconds that it waits for an agent server, named pipe for the input (empty:
 * no input), then the words of the command.
 * Standard input ends with the agent server; standard output is the file of the output, standard error that of the end. In a sandbox,
 * descriptor 3 is its line. Where the file for them exists, errors of the programs before a sandboxed command go there.
 *
 * The command replaces a subshell: where shells redirect themselves, their words on a signal would go to the output.
 *
 * A sandboxed command can signal its process group, and so stop this shell. Its watch has a session of its own.
 */
export const keeperScript = `
exec 6<&0 </dev/null
f=$1 o=$2 deadline=$3 patience=$4 input=$5 keeper=$$
shift 5
if [ -n "$input" ]; then mkfifo -m 600 "$input" && exec 5<>"$input"; else exec 5</dev/null; fi
trap : HUP INT TERM
script='${watchScript}'
if [ -f "$f.err" ] && command -v setsid >/dev/null; then
  f=$f o=$o deadline=$deadline patience=$patience keeper=$keeper setsid /bin/sh -c "$script" &
else
  (eval "$script") &
fi
watch=$!
echo started >&2
(if [ -f "$f.err" ]; then exec 2>>"$f.err"; else exec 2>&1; fi; exec "$@" <&5 3<&- 5<&- 6<&-)
echo $? >&2
exec 2>/dev/null
kill -USR1 $watch
wait $watch
`;

/** Report of a keeper. */
export interface KeeperReport {
  /** False: the command was never started. */
  readonly hasStarted: boolean;
  /** Why the watch has ended the command: its deadline, or no agent server came. */
  readonly endedFor?: 'timedOut' | 'abandoned';
  /** Absent: the command runs, or its keeper ended first. Null: a signal ended the command. */
  readonly exitCode?: number | null;
  readonly signal?: number;
}

/**
 * Reads the lines of a keeper: \`started\`, perhaps the reason of the watch, then the exit status. Before the status of a command that a signal
 * has ended, shells write the name of the signal: a program may also exit with such a status.
 */
export function readReport(lines: readonly string[]): KeeperReport {
  const hasStarted = lines.includes('started');
  const endedFor = lines.find((line) => line === 'timedOut' || line === 'abandoned');
  const at = lines.findIndex((line) => /^\d{1,3}$/.test(line));
  const facts = { hasStarted, ...(endedFor !== undefined && { endedFor }) };
  if (at < 0) return facts;
  const status = Number(lines[at]);
  const isNamed = lines.slice(0, at).some((line) => line !== 'started' && line !== endedFor);
  return status > 128 && isNamed ? { ...facts, exitCode: null, signal: status - 128 } : { ...facts, exitCode: status };
}
