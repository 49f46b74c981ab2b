/** Loaded only when telemetry is on, so that other processes do not pay for the OpenTelemetry SDK. */
import type { Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Config } from '../config/index.ts';
import { proxyFor, throughProxy } from '../http/index.ts';
import { defaults } from '../protocol/index.ts';
import type { ExportNumbers } from './export-numbers.ts';
import { SpanIds } from './span-ids.ts';

export interface ExporterOptions {
  readonly settings: Pick<Config['Telemetry'], 'Endpoint' | 'Headers'>;
  /** Sender of the spans; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES of the environment win. */
  readonly resource: Readonly<Record<string, string>>;
  readonly version: string;
  readonly numbers: ExportNumbers;
}

/** Sends spans to a collector, many at a time, and never more than fit into its queue. */
export interface Exporter {
  readonly tracer: Tracer;
  /** Ids of the spans of the tracer. */
  readonly ids: SpanIds;
  /** Sends the waiting spans; resolves after success or failure. */
  shutdown(): Promise<void>;
}

const { queueSpans, batchSpans, delayMs, exportTimeoutMs } = defaults.telemetry;

export function createExporter({ settings, resource, version, numbers }: ExporterOptions): Exporter {
  const { Endpoint, Headers } = settings;
  const otlp = new OTLPTraceExporter({
    // Absent values are read from the environment (OTEL_EXPORTER_OTLP_…); its own default is this machine.
    ...(Endpoint !== '' && { url: tracesUrl(Endpoint) }),
    headers: Headers,
    ...proxied(Endpoint),
    timeoutMillis: exportTimeoutMs,
    // At the end all waiting spans are sent at once, beside the batches under way.
    concurrencyLimit: Math.ceil(queueSpans / batchSpans) + 1,
  });
  const queue = new BoundedQueue(otlp, numbers);
  const ids = new SpanIds();
  const provider = new TracerProvider({
    idGenerator: ids,
    resource: defaultResource()
      .merge(resourceFromAttributes(resource))
      .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    spanProcessors: [queue.processor],
  });
  return { tracer: provider.getTracer('oratorio', version), ids, shutdown: () => provider.shutdown() };
}

/** Agent of the exporter's connections, where they need a proxy. */
function proxied(
  endpoint: string,
): Pick<ConstructorParameters<typeof OTLPTraceExporter>[0] & object, 'httpAgentOptions'> {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces, OTEL_EXPORTER_OTLP_ENDPOINT: all } = process.env;
  const url = endpoint || traces || all || '';
  const proxy = URL.canParse(url) ? proxyFor(new URL(url)) : undefined;
  return proxy ? { httpAgentOptions: { keepAlive: true, ...throughProxy(proxy) } } : {};
}

/** An address without a path is that of a collector (OTLP/HTTP: `/v1/traces`). */
export function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url.href;
}

/** The SDK's batching, with every span accounted for: the SDK silently drops spans that do not fit. */
class BoundedQueue {
  readonly processor: SpanProcessor;
  #waiting = 0;

  constructor(exporter: SpanExporter, numbers: ExportNumbers) {
    const batches = new BatchSpanProcessor({
      exporter: this.#counting(exporter, numbers),
      maxQueueSize: queueSpans,
      maxExportBatchSize: batchSpans,
      scheduledDelayMillis: delayMs,
      exportTimeoutMillis: exportTimeoutMs,
    });
    this.processor = {
      onStart: (span, context) => batches.onStart(span, context),
      onEnd: (span) => {
        if (this.#waiting >= queueSpans) return numbers.dropped(1);
        this.#waiting += 1;
        batches.onEnd(span);
      },
      forceFlush: () => batches.forceFlush(),
      shutdown: () => batches.shutdown(),
    };
  }

  #counting(exporter: SpanExporter, numbers: ExportNumbers): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done) => {
        this.#waiting -= spans.length;
        exporter.export(spans, (result) => {
          if (result.error) numbers.failed(spans.length, result.error);
          else numbers.exported(spans.length);
          done(result);
        });
      },
      shutdown: () => exporter.shutdown(),
    };
  }
}
