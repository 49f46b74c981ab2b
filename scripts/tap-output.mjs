/** Reads and writes TAP. Plain JavaScript without dependencies, as `test.mjs` is. */

const summaryLine = /^# (?:slow|costly|failed): /;
const longFiles = 10;
const seconds = (milliseconds) => (milliseconds / 1000).toFixed(1);

/**
 * Counts assertions that passed and failed, from the summary at the end of a TAP stream: `# { total: 5, pass: 4, fail: 1 }`.
 * Undefined without a summary: the run broke off.
 */
export function countsOf(tap) {
  const summary = tap.match(/^# \{ total: .*\}$/gm)?.at(-1);
  if (summary === undefined) return undefined;
  const count = (name) => Number(summary.match(new RegExp(`\\b${name}: (\\d+)`))?.[1] ?? 0);
  return { passed: count('pass'), failed: count('fail') };
}

/**
 * Filters TAP lines for a log: files as they end, every failure with its diagnostics, and the lists at the end. Takes each line in
 * turn.
 */
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
    return inDiagnostics || summaryLine.test(line);
  };
}

/** Reports one file as a subtest: its TAP, the verdict with the times and, for a failure, how the process ended. */
export function fileReport({ name, isGood, milliseconds, cpuSeconds, output, exitCode, signal, isTimedOut }, number) {
  const body = output.replaceAll(/^(?=.)/gm, '    ');
  const cpu = cpuSeconds === undefined ? '' : ` cpu=${cpuSeconds.toFixed(2)}s`;
  const verdict = `${isGood ? 'ok' : 'not ok'} ${number} - ${name} # time=${Math.round(milliseconds)}ms${cpu}`;
  const end = `  ---\n  exitCode: ${exitCode}\n  signal: ${signal}\n${isTimedOut ? '  timeout: true\n' : ''}  ...\n`;
  return `# Subtest: ${name}\n${body}${body.endsWith('\n') ? '' : '\n'}${verdict}\n${isGood ? '' : end}\n`;
}

/**
 * Failures of a TAP stream, each with the titles of the subtests around it. A log that is cut keeps its end, so the end of a run
 * repeats them.
 */
export function failuresOf(tap) {
  const lines = tap.matchAll(/^( *)not ok \d+ - (?!.*# (?:todo|skip)\b)(.*?)(?: # time=.*)?$/gim);
  const failures = [];
  /** Failure read last, after those around it: TAP reports a subtest after its parts. */
  let around = [];
  for (const [, { length: depth }, title] of [...lines].reverse()) {
    const isPart = (around.at(-1)?.depth ?? -1) < depth;
    around = [...around.filter((outer) => outer.depth < depth), { depth, title }];
    failures.unshift(around);
    // The subtest that it is a part of fails because of it.
    if (isPart) failures.splice(1, 1);
  }
  return failures.map((path) => path.map(({ title }) => title).join(' › '));
}

/** One line for each failure of a file; a file without a failed assertion is named alone, one that ran into its time limit with its last result. */
export function failureLines(name, tap, isTimedOut = false) {
  const titles = failuresOf(tap);
  if (isTimedOut) {
    const [, last = 'its start'] = [...tap.matchAll(/^ *(?:ok|not ok) \d+ - (.*?)(?: # time=.*)?$/gm)].at(-1) ?? [];
    titles.push(`took too long, and was ended after “${last}”`);
  }
  return titles.length === 0 ? [`# failed: ${name}`] : titles.map((title) => `# failed: ${name} › ${title}`);
}

/** Ends the TAP of a run: files by their time and by their processor time, failures, the plan and the sum of all assertions. */
export function summaryReport(results) {
  const slowest = results.toSorted((a, b) => b.milliseconds - a.milliseconds).slice(0, longFiles);
  const measured = results.filter(({ cpuSeconds }) => cpuSeconds !== undefined);
  const costliest = measured.toSorted((a, b) => b.cpuSeconds - a.cpuSeconds).slice(0, longFiles);
  const sum = (key) => results.reduce((total, { counts }) => total + counts[key], 0);
  const [pass, fail] = [sum('passed'), sum('failed')];
  return [
    ...slowest.map(({ name, milliseconds }) => `# slow: ${seconds(milliseconds).padStart(6)} s  ${name}`),
    ...costliest.map(({ name, cpuSeconds }) => `# costly: ${cpuSeconds.toFixed(1).padStart(4)} s of CPU  ${name}`),
    ...results
      .filter(({ isGood }) => !isGood)
      .flatMap(({ name, output, isTimedOut }) => failureLines(name, output, isTimedOut)),
    `1..${results.length}`,
    `# { total: ${pass + fail}, pass: ${pass}, fail: ${fail} }`,
    '',
  ].join('\n');
}
