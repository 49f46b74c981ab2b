/**
 * The event log: gives every event an id, keeps the last ones in a bounded ring, hands them serialised to whoever listens
 * and tells a returning reader what it missed, or that it missed something. Called by the rooms that publish events and,
 * as an `SseSource`, by `src/http`. Never here: what an event means, or a connection.
 */
export { EventLog, type EventLogOptions, type Gap, type LoggedEvent } from './event-log.ts';
