import type { MachineGraph } from './graph.ts';

type Graph = Pick<MachineGraph, 'name'> & {
  readonly nodes: readonly Pick<MachineGraph['nodes'][number], 'id' | 'parent' | 'label' | 'kind' | 'initial'>[];
  readonly edges: readonly Pick<
    MachineGraph['edges'][number],
    'id' | 'source' | 'target' | 'event' | 'guard' | 'actions' | 'delayMs'
  >[];
};

/**
 * Number of a machine's states and transitions, as text: a drawing belongs to a chart of the same fingerprint. It recognises
 * other versions of a machine; it is no protection against a chart that was made to have it.
 */
export function fingerprintOf({ name, nodes, edges }: Graph): string {
  const text = JSON.stringify([
    name,
    nodes.map(({ id, parent, label, kind, initial }) => [id, parent, label, kind, initial]),
    edges.map(({ id, source, target, event, guard, actions, delayMs }) => [
      id,
      source,
      target,
      event,
      guard,
      actions,
      delayMs ?? null,
    ]),
  ]);
  let [high, low] = [0xdeadbeef, 0x41c6ce57];
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  }
  return `${(high >>> 0).toString(16).padStart(8, '0')}${(low >>> 0).toString(16).padStart(8, '0')}`;
}
