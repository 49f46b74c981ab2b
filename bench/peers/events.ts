/** The event every server of a comparison sends: a record of the Hub's stream, about 230 bytes as a frame. */
export interface BenchEvent {
  readonly kind: string;
  readonly at: string;
  readonly workspacePath: string;
  readonly data: { readonly pid: number; readonly endpoints: Readonly<Record<string, string>> };
}

let sequence = 0;

export function makeEvent(kind = 'appserver.running'): BenchEvent {
  sequence += 1;
  return {
    kind,
    at: new Date().toISOString(),
    workspacePath: '/home/user/projects/example',
    data: {
      pid: 1000 + (sequence % 9000),
      endpoints: { appServerWebSocket: 'ws://127.0.0.1:40123/ws' },
    },
  };
}

/** The frame as peers without an event log make it: once per event, for all readers. */
export function makeFrame(): string {
  const event = makeEvent();
  return `event: ${event.kind}\nid: bench-${sequence}\ndata: ${JSON.stringify(event)}\n\n`;
}

export function makeFrames(count: number): string {
  let frames = '';
  for (let index = 0; index < count; index += 1) frames += makeFrame();
  return frames;
}
