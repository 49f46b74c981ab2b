/**
 * Loaded by the bundle of a test file: at its end the process writes its processor time, with that of all children it has waited
 * for, as a comment of TAP. Linux only.
 */
// `import` costs each test process 4 ms more (`builtin-modules.ts`).
const { existsSync, readFileSync } = process.getBuiltinModule('node:fs');

/** Unit of the times in `/proc`, in seconds. */
const tick = 0.01;

if (existsSync('/proc/self/stat')) {
  process.on('exit', () => {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // User and system time of the process, then of its children.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    process.stdout.write(`# cpu: ${(ticks * tick).toFixed(2)}\n`);
  });
}
