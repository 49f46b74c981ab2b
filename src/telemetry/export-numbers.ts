import type { Logger } from '../log/index.ts';
import type { Family } from './metric.ts';
import { Counter } from './numbers.ts';
import { exportMetrics } from './table.ts';

/** Results of span exports. A failing collector is logged once, and once more when it is back. */
export class ExportNumbers {
  readonly #logger: Logger;
  readonly #spans = new Counter(
    exportMetrics.spans,
    ['exported', 'failed', 'dropped'].map((result) => ({ result })),
  );
  readonly #exports = new Counter(
    exportMetrics.exports,
    ['completed', 'failed'].map((outcome) => ({ outcome })),
  );
  #isFailing = false;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  exported(spans: number): void {
    this.#spans.add({ result: 'exported' }, spans);
    this.#exports.add({ outcome: 'completed' });
    if (this.#isFailing) this.#logger.info('the telemetry collector takes spans again');
    this.#isFailing = false;
  }

  failed(spans: number, error: Error): void {
    this.#spans.add({ result: 'failed' }, spans);
    this.#exports.add({ outcome: 'failed' });
    // Without the body of the answer, which is not ours.
    if (!this.#isFailing)
      this.#logger.warn('spans cannot be exported; see Telemetry.Endpoint', { reason: error.message });
    this.#isFailing = true;
  }

  dropped(spans: number): void {
    this.#spans.add({ result: 'dropped' }, spans);
  }

  families(): Family[] {
    return [this.#spans.family(), this.#exports.family()];
  }
}
