/**
 * The event log: gives every event an id, holds the last ones in a bounded ring, delivers them serialised to subscribers,
 * and replays to a returning reader the events it missed, or reports a gap. Called by the rooms that publish events and,
 * as an `SseSource`, by `src/http`. Never here: the meaning of an event, or a connection.
 */
export { EventLog, type EventLogOptions, type Gap, type LoggedEvent } from './event-log.ts';
