import { type Drawings, fingerprintOf, leafOf, pathTo } from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import type { Picked } from './link.ts';

const loads = new Map<string, Promise<Drawings | null>>();

/**
 * Drawings of a chart around each of its states, generated in advance and fetched when first shown. Null: none exist for
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

/** Simple state that a drawing is made around: the picked state, else the active one. */
export function focusOf(chart: Chart, states: readonly string[], pick: Picked | null): string {
  const active = states.findLast((state) => !states.some((other) => other.startsWith(`${state}.`))) ?? '';
  const leaf = leafOf(chart.nodes, active);
  if (pick?.kind !== 'state' || !chart.nodes.some(({ id }) => id === pick.id)) return leaf;
  return pathTo(leaf).includes(pick.id) ? leaf : leafOf(chart.nodes, pick.id);
}
