/** The sleep of an idle agent server on the wire: the Hub asks, the agent server decides. */
import * as v from 'valibot';

/** Path on the listener of an agent server's WebSocket, with the token of the WebSocket. */
export const sleepPath = '/v1/sleep';

/** Asks a server to end if it has been idle this long and has no client. */
export const SleepRequest = v.object({ idleMs: v.pipe(v.number(), v.minValue(0)) });
export type SleepRequest = v.InferOutput<typeof SleepRequest>;

/** Decision: `true`, the server accepts no connection any more and ends. */
export const Sleep = v.object({ sleeps: v.boolean() });
export type Sleep = v.InferOutput<typeof Sleep>;
