/** A server that the client libraries are tried against. The model behind it is the parrot (`parrot.ts`). */
export interface Target {
  /** With `/v1`, as SDKs want it. */
  readonly baseUrl: string;
  /** The server asks for it. */
  readonly key: string;
}

/** Resolves once no turn runs on the server, by `GET /v1/health`. */
export async function untilIdle({ baseUrl }: Target): Promise<void> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const { activeTurns } = (await (await fetch(`${baseUrl}/health`)).json()) as { activeTurns: number };
    if (activeTurns === 0) return;
    if (Date.now() > deadline) throw new Error(`${activeTurns} turns still run`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** One pixel, as base64. */
export const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
/** Answer of the parrot to “see” with the pixel. */
export const seenPixel = 'data:image/png;base64,iVBORw0K';

export const weather = {
  name: 'get_weather',
  description: 'The weather of a city',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
} as const;
