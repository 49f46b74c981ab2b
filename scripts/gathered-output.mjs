/**
 * Loaded by the bundle of a test file: its output within one turn of the event loop is written at once. tap writes each
 * line alone, and each write wakes the runner.
 */
const { stdout } = process;
const write = stdout.write;
// Tests replace timers.
const later = setImmediate;
let waiting = '';
let isExiting = false;

function flush() {
  const text = waiting;
  waiting = '';
  if (text !== '') Reflect.apply(write, stdout, [text]);
}

stdout.write = (text, ...more) => {
  if (isExiting || typeof text !== 'string' || more.length > 0) {
    flush();
    return Reflect.apply(write, stdout, [text, ...more]);
  }
  // The pending flush delays the exit, because an exit writes only as much as the pipe holds.
  if (waiting === '') later(flush);
  waiting += text;
  return true;
};

process.on('exit', () => {
  isExiting = true;
  flush();
});
