/**
 * Loaded by the bundle of a test file: its output within one turn of the event loop is written at once. tap writes each
 * line alone, and each write wakes the runner.
 */
const { stdout } = process;
const write = stdout.write;
// Tests replace timers.
const later = setImmediate;
let waiting = '';
let isEnding = false;

function flush() {
  const text = waiting;
  waiting = '';
  if (text !== '') Reflect.apply(write, stdout, [text]);
}

stdout.write = (text, ...more) => {
  if (isEnding || typeof text !== 'string' || more.length > 0) {
    flush();
    return Reflect.apply(write, stdout, [text, ...more]);
  }
  // A pending flush does not keep the process alive: tests list the resources that do.
  if (waiting === '') later(flush).unref();
  waiting += text;
  return true;
};

// From here on, each write keeps the process alive until the runner has read it. An exit writes only as much as the pipe holds.
for (const event of ['beforeExit', 'exit']) {
  process.on(event, () => {
    isEnding = true;
    flush();
  });
}
