import type { MachineGraph } from './graph.ts';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('\n', ' ');
const code = (text: string): string => (text === '' ? '' : `\`${cell(text)}\``);

/** Markdown table of every transition of a machine, in the order in which the machine tries them. */
export function tableOf(graph: MachineGraph): string {
  const rows = graph.edges.map((edge) =>
    [
      code(edge.source || `(${graph.name})`),
      code(edge.event),
      code(edge.guard ?? ''),
      edge.internal ? '–' : code(edge.target),
      edge.actions.map(code).join(', '),
    ].join(' | '),
  );
  return [
    '| From | Event | Guard | To | Actions |',
    '|---|---|---|---|---|',
    ...rows.map((row) => `| ${row} |`),
    '',
  ].join('\n');
}

/** Markdown table of every state: its description and its invoked actors. */
export function statesTableOf(graph: MachineGraph): string {
  const rows = graph.nodes
    .filter((node) => node.parent !== null)
    .map((node) => {
      const does = [
        ...node.invokes.map((name) => `runs ${code(name)}`),
        ...(node.entry.length ? [`entry ${node.entry.map(code).join(', ')}`] : []),
        ...(node.exit.length ? [`exit ${node.exit.map(code).join(', ')}`] : []),
      ];
      return `| ${code(node.id)} | ${cell(node.description)} | ${does.join('; ')} |`;
    });
  return ['| State | Meaning | Does |', '|---|---|---|', ...rows, ''].join('\n');
}
