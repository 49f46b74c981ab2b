/**
 * The logger: one line per record on standard error, JSON for programs and text for people, with secrets taken out. Every
 * room above calls it. Never here: files and their rotation (`src/supervise` keeps a child's output), metrics, events.
 */
export type { LogStream } from './log-file.ts';
export {
  createLogger,
  type Fields,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  type LogRecord,
  levelOf,
  logLevels,
} from './logger.ts';
export { type NumberedLogRecord, RecentLog } from './recent.ts';
export { Secrets } from './redact.ts';
