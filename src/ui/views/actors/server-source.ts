import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import { type Drawings, fingerprintOf } from '../../../inspect/browser.ts';
import { messageOf } from '../../../lib/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { App } from '../../app/app.ts';
import { learnKinds } from '../../parts/tone.ts';
import type { ActorSource } from './source.ts';

/** Machines of an Oratorio server. The server sends their charts; the page contains their drawings and the machines. */
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

/** Fetches the charts at once, and again when the server is reachable again. */
function fetchCharts(app: App, isLoaded: ReadonlySignal<boolean>, notice: Signal<string | null>) {
  const charts = signal<ReadonlyMap<string, Chart>>(new Map());
  async function load(): Promise<void> {
    try {
      const list = await app.api.get<Chart[]>(app.server.machines);
      charts.value = new Map(list.map((chart) => [chart.name, chart]));
      learnKinds(list);
    } catch (error) {
      // No notice before the stream starts, because its start loads the charts again.
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
 * Drawings of a chart, generated in advance and fetched on first use. Null: none exist for
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
    // The machine is unknown or the server has ended. The page shows the whole chart; the next page load retries.
    loads.delete(name);
    return null;
  }
}
