import type { Tracer } from '@opentelemetry/api';
import type { Config } from '../config/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, version } from '../protocol/index.ts';
import { ExportNumbers } from './export-numbers.ts';
import type { Exporter } from './exporter.ts';
import type { SpanIds } from './span-ids.ts';

export interface SpanExportOptions {
  readonly settings: Config['Telemetry'];
  /** Sender, in words of OpenTelemetry's resource conventions. */
  readonly resource: Readonly<Record<string, string>>;
  readonly logger: Logger;
  /** @returns the function that ends all open spans */
  readonly makeSpans: (tracer: Tracer, ids: SpanIds) => Promise<{ close(): void }>;
  /** Longest that the end waits for the last spans. Default: less than supervisors wait for the end of a process. */
  readonly flushMs?: number | undefined;
}

/** The way of spans out of this process: loads the SDK, and ends in time. */
export class SpanExport {
  readonly numbers: ExportNumbers;
  readonly #logger: Logger;
  readonly #flushMs: number;
  readonly #running: Promise<{ readonly exporter: Exporter; readonly spans: { close(): void } } | undefined>;

  constructor({ settings, resource, logger, makeSpans, flushMs = defaults.telemetry.flushMs }: SpanExportOptions) {
    for (const value of Object.values(settings.Headers)) logger.protect(value);
    this.#logger = logger;
    this.#flushMs = flushMs;
    this.numbers = new ExportNumbers(logger);
    this.#running = this.#start(settings, resource, makeSpans);
  }

  /** Ends the open spans, and sends them if the collector is quick. Never rejects. */
  async stop(): Promise<void> {
    await within(this.#flushMs, this.#flush()).catch((error: unknown) => this.#logger.bug(error));
  }

  async #flush(): Promise<void> {
    const running = await this.#running;
    if (!running) return;
    running.spans.close();
    // The metrics and the log have the outcome.
    await running.exporter.shutdown().catch(() => undefined);
  }

  async #start(
    settings: Config['Telemetry'],
    resource: SpanExportOptions['resource'],
    makeSpans: SpanExportOptions['makeSpans'],
  ) {
    try {
      const { createExporter } = await import('./exporter.ts');
      const exporter = createExporter({ settings, resource, version, numbers: this.numbers });
      return { exporter, spans: await makeSpans(exporter.tracer, exporter.ids) };
    } catch (error) {
      this.#logger.bug(error);
      return undefined;
    }
  }
}

async function within(milliseconds: number, work: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, milliseconds);
  await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}
