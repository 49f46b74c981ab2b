const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
  hourCycle: 'h23',
});

export const timeOfDay = (at: Date): string => clock.format(at);

/** A duration in the two units that matter: `842 ms`, `12 s`, `3 m 08 s`, `5 h 02 m`, `3 d 07 h`. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  if (seconds < 60) return `${seconds} s`;
  const pad = (value: number) => String(value).padStart(2, '0');
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${pad(seconds % 60)} s`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ${pad(Math.floor((seconds % 3600) / 60))} m`;
  return `${Math.floor(seconds / 86_400)} d ${pad(Math.floor((seconds % 86_400) / 3600))} h`;
}

/** Time in a state, for a list that is redrawn each second: no milliseconds, which would only flicker. */
export const age = (milliseconds: number): string => (milliseconds < 1000 ? 'now' : duration(milliseconds));

/** Splits a path into its last segment (`tail`) and the part before it (`head`). */
export function splitPath(path: string): { head: string; tail: string } {
  const slash = path.replace(/[/\\]+$/, '').search(/[^/\\]+$/);
  return slash <= 0 ? { head: '', tail: path } : { head: path.slice(0, slash), tail: path.slice(slash) };
}

/** Last segment of a path. */
export const lastName = (path: string): string => splitPath(path).tail.replace(/^[/\\]/, '');

const abbreviations: Readonly<Record<string, string>> = { pid: 'PID', api: 'API', mcp: 'MCP', agui: 'AG-UI' };

/** `lastError` as `Last error`. */
export function humanName(name: string): string {
  const words = name
    .replace(/Ms$/, '')
    .replace(/([a-z])([A-Z])/g, '$1 $2')
    .toLowerCase();
  return abbreviations[words] ?? words.charAt(0).toUpperCase() + words.slice(1);
}
