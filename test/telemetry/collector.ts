/** OpenTelemetry collector that decodes received spans (OTLP/HTTP, JSON encoding). */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import type { Test } from 'tap';
import * as v from 'valibot';

const hex = (length: number) => v.pipe(v.string(), v.regex(new RegExp(`^[0-9a-f]{${length}}$`)));
const Value = v.union([
  v.strictObject({ stringValue: v.string() }),
  v.strictObject({ boolValue: v.boolean() }),
  v.strictObject({ intValue: v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d+$/))]) }),
  v.strictObject({ doubleValue: v.number() }),
  v.strictObject({ arrayValue: v.object({ values: v.array(v.unknown()) }) }),
]);
const KeyValues = v.array(v.object({ key: v.string(), value: Value }));
const nanoseconds = v.pipe(v.string(), v.regex(/^\d{19}$/));

/** `ExportTraceServiceRequest` of opentelemetry-proto, as far as we send it. */
const Request = v.object({
  resourceSpans: v.array(
    v.object({
      resource: v.object({ attributes: KeyValues }),
      scopeSpans: v.array(
        v.object({
          scope: v.object({ name: v.string(), version: v.optional(v.string()) }),
          spans: v.array(
            v.object({
              traceId: hex(32),
              spanId: hex(16),
              parentSpanId: v.optional(hex(16)),
              name: v.string(),
              kind: v.number(),
              startTimeUnixNano: nanoseconds,
              endTimeUnixNano: nanoseconds,
              attributes: v.optional(KeyValues, []),
              events: v.optional(v.array(v.object({ name: v.string(), attributes: v.optional(KeyValues, []) })), []),
              links: v.optional(
                v.array(v.object({ traceId: hex(32), spanId: hex(16), attributes: v.optional(KeyValues, []) })),
                [],
              ),
              status: v.object({ code: v.optional(v.number(), 0), message: v.optional(v.string()) }),
            }),
          ),
        }),
      ),
    }),
  ),
});

type Attributes = Readonly<Record<string, unknown>>;

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  /** Milliseconds since the Unix epoch. */
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly attributes: Attributes }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string; readonly attributes: Attributes }[];
  readonly isError: boolean;
  readonly message: string | undefined;
  readonly resource: Attributes;
}

function plainValue(value: v.InferOutput<typeof Value>): unknown {
  if ('intValue' in value) return Number(value.intValue);
  if ('arrayValue' in value) return value.arrayValue.values.map((each) => plainValue(v.parse(Value, each)));
  return Object.values(value)[0];
}

const attributesOf = (pairs: v.InferOutput<typeof KeyValues>): Attributes =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, plainValue(value)]));

const millisecondsOf = (nano: string): number => Number(BigInt(nano) / 1_000n) / 1_000;

function spansOf(body: string): ReceivedSpan[] {
  const { resourceSpans } = v.parse(Request, JSON.parse(body));
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        ...span,
        parentSpanId: span.parentSpanId,
        startedAt: millisecondsOf(span.startTimeUnixNano),
        endedAt: millisecondsOf(span.endTimeUnixNano),
        attributes: attributesOf(span.attributes),
        events: span.events.map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
        links: span.links.map((link) => ({ ...link, attributes: attributesOf(link.attributes) })),
        isError: span.status.code === 2,
        message: span.status.message,
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

export interface Collector {
  readonly url: string;
  readonly server: Server;
  readonly spans: ReceivedSpan[];
  readonly requests: { readonly path: string; readonly headers: IncomingMessage['headers'] }[];
  /** Resolves with the first span that is meant. */
  until(isMeant: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan>;
}

type Answer = (response: ServerResponse, count: number) => void;

const ok: Answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{}');

/** @param answer handles each request after its spans are recorded */
export async function collector(t: Test, answer: Answer = ok): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const requests: Collector['requests'] = [];
  const waiting = new Set<() => void>();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // The exporter gave up: it closes the connection when its time is over.
      return;
    }
    const bytes = Buffer.concat(chunks);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes;
    requests.push({ path: request.url ?? '', headers: request.headers });
    spans.push(...spansOf(body.toString('utf8')));
    answer(response, requests.length);
    for (const check of waiting) check();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    server,
    spans,
    requests,
    until: (isMeant) =>
      new Promise((resolve) => {
        const check = () => {
          const found = spans.find(isMeant);
          if (!found) return;
          waiting.delete(check);
          resolve(found);
        };
        waiting.add(check);
        check();
      }),
  };
}
