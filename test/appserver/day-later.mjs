/**
 * Preloaded module: moves the wall clock of its process one day forward at each SIGUSR2, as after a sleep of the machine.
 * `ORATORIO_TEST_HOURS` moves it before the process starts.
 */
let days = Number(process.env.ORATORIO_TEST_HOURS ?? 0) / 24;
process.on('SIGUSR2', () => {
  days += 1;
});

const { now } = Date;
const wallClock = () => now() + days * 86_400_000;

globalThis.Date = class extends Date {
  static now = wallClock;

  constructor(...parts) {
    super(...(parts.length === 0 ? [wallClock()] : parts));
  }
};
