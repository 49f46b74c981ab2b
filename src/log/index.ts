/**
 * The logger: one line per record on standard error, JSON for programs and text for people, with secrets taken out. Every
 * room above calls it. Never here: files and their rotation (`src/supervise` keeps a child's output), metrics, events.
 */
export {
  createLogger,
  type Fields,
  type Logger,
  type LoggerOptions,
  type LogLevel,
  type LogStream,
  levelOf,
  logLevels,
} from './logger.ts';
export { type LogRecord, type NumberedLogRecord, RecentLog } from './recent.ts';
export { Secrets } from './redact.ts';
