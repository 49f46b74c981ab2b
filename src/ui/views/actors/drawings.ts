import { type Drawings, fingerprintOf } from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';

const loads = new Map<string, Promise<Drawings | null>>();

/**
 * Drawings of a chart, generated in advance and fetched when first shown. Null: none exist for
 * this version of the machine, as for the chart of an older recording.
 */
export async function drawingsOf(chart: Chart): Promise<Drawings | null> {
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
