import type { DelegatedRequest } from '../../agent/index.ts';
import type { Logger } from '../../log/index.ts';
import { type Dialect, requestOf, sessionOf } from './dialects.ts';
import { TelemetryReceiver } from './receiver.ts';

/** A request to a model that an agent has exported. */
export interface ExportedRequest {
  /** Session that the record names; undefined: it names none. */
  readonly sessionId: string | undefined;
  readonly request: DelegatedRequest;
}

export interface ExportOptions {
  readonly agent: string;
  readonly dialect: Dialect;
  readonly logger: Logger;
  readonly protect: (secret: string) => void;
  /** @returns number of requests that belong to no turn */
  readonly take: (requests: readonly ExportedRequest[]) => number;
  /** Called when the agent exports nothing more. */
  readonly onClosed: () => void;
}

/** Requests to models in the telemetry of one life of an agent's process. */
export class AgentExport {
  readonly #options: ExportOptions;
  #receiver: TelemetryReceiver | undefined;
  #hasExported = false;
  #dropped = 0;

  constructor(options: ExportOptions) {
    this.#options = options;
  }

  /** Whether the agent has exported telemetry; undefined: no receiver is open. */
  get isExporting(): boolean | undefined {
    return this.#receiver && this.#hasExported;
  }

  /** @returns variables for the process; none when no port can be had */
  async open(): Promise<Readonly<Record<string, string>>> {
    const { agent, dialect, logger, protect } = this.#options;
    try {
      this.#receiver = await TelemetryReceiver.listen({
        ...{ logger, protect },
        take: (signal, records) => {
          this.#hasExported = true;
          if (signal !== dialect.signal) return;
          const now = Date.now();
          const requests = records.flatMap((record) => {
            const request = requestOf(dialect, record, now);
            return request ? [{ sessionId: sessionOf(dialect, record), request }] : [];
          });
          this.#dropped += this.#options.take(requests);
        },
      });
      return dialect.variables(this.#receiver.address);
    } catch (error) {
      logger.warn('could not listen for the telemetry of an agent; its traces have fewer spans', { agent, error });
      return {};
    }
  }

  async close(): Promise<void> {
    await this.#receiver?.close();
    const { agent, logger, onClosed } = this.#options;
    onClosed();
    if (this.#dropped > 0) logger.info('an agent has exported requests of no turn', { agent, dropped: this.#dropped });
  }
}
