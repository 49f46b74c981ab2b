/** Reading what tap writes. Plain JavaScript without dependencies, as `test.mjs` is. */

/**
 * How many assertions passed and failed, from the summary at the end of a TAP stream: `# { total: 5, pass: 4, fail: 1 }`.
 * Throws when there is none: the run has not come to its end.
 */
export function countsOf(tap) {
  const summary = tap.match(/^# \{ total: .*\}$/gm)?.at(-1);
  if (summary === undefined) throw new Error('the TAP stream has no summary');
  const count = (name) => Number(summary.match(new RegExp(`\\b${name}: (\\d+)`))?.[1] ?? 0);
  return { passed: count('pass'), failed: count('fail') };
}

/** A filter of TAP lines for a log: files as they end, and every failure with its diagnostics. Give it each line in turn. */
export function isWorthShowing() {
  let inDiagnostics = false;
  return (line) => {
    const [, indent = '', verdict, rest = ''] = /^( *)(not ok|ok)\b(.*)$/.exec(line) ?? [];
    if (verdict !== undefined) {
      const isFailure = verdict === 'not ok' && !/# (todo|skip)\b/i.test(rest);
      inDiagnostics = isFailure;
      return isFailure || indent === '';
    }
    if (/^\s*(# Subtest|\d+\.\.\d+)/.test(line)) inDiagnostics = false;
    return inDiagnostics;
  };
}
