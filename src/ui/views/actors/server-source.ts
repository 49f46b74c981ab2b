import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Drawings, fingerprintOf } from '../../../inspect/browser.ts';
import { messageOf } from '../../../lib/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { learnKinds } from '../../parts/tone.ts';
import type { ActorSource } from './source.ts';

/** Machines of a server of Oratorio: their charts come from it, their drawings and the machines themselves are part of this page. */
export function createServerSource(
  app: App,
  isLoaded: ReadonlySignal<boolean>,
  notice: Signal<string | null>,
): ActorSource {
  const { charts, stop } = fetchCharts(app, isLoaded, notice);
  return {
    charts,
    isPending: () => charts.value.size === 0 && notice.value === null,
    drawingsOf,
    copyOf: ({ name }, drawings) => (drawings ? { facts: drawings.facts, load: () => machineOf(name) } : undefined),
    stop,
  };
}

async function machineOf(name: string) {
  const { catalogue } = await import('../../../../machines/catalogue.ts');
  const machine = catalogue[name];
  if (!machine) throw new Error(`There is no machine ${name}.`);
  return machine;
}

/** Fetches the charts at once, and again when the server comes back after it could not be reached. */
function fetchCharts(app: App, isLoaded: ReadonlySignal<boolean>, notice: Signal<string | null>) {
  const charts = signal<ReadonlyMap<string, Chart>>(new Map());
  async function load(): Promise<void> {
    try {
      const list = await app.api.get<Chart[]>(app.server.machines);
      charts.value = new Map(list.map((chart) => [chart.name, chart]));
      learnKinds(list);
    } catch (error) {
      // Before the start of the stream there is no notice: the start loads the charts again.
      if (isLoaded.peek()) notice.value = `The charts could not be loaded: ${messageOf(error)}`;
    }
  }
  let isLoading = false;
  const stop = effect(() => {
    void isLoaded.value;
    if (isLoading || charts.peek().size > 0) return;
    isLoading = true;
    void load().finally(() => {
      isLoading = false;
    });
  });
  return { charts, stop };
}

const loads = new Map<string, Promise<Drawings | null>>();

/**
 * Drawings of a chart, generated in advance and fetched when first shown. Null: none exist for
 * this version of the machine, as for the chart of an older recording.
 */
async function drawingsOf(chart: Chart): Promise<Drawings | null> {
  const load = loads.get(chart.name) ?? fetchDrawings(chart.name);
  loads.set(chart.name, load);
  const drawings = await load;
  return drawings?.fingerprint === fingerprintOf(chart) ? drawings : null;
}

async function fetchDrawings(name: string): Promise<Drawings | null> {
  try {
    const file: { readonly default: Drawings } = await import(`./drawn/${name}.generated.json`);
    return file.default;
  } catch {
    // No such machine, or the server has gone: the whole chart is shown, and the next page tries again.
    loads.delete(name);
    return null;
  }
}
