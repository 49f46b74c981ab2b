import type { GraphEdge, GraphNode, MachineGraph } from './graph.ts';
import { boxLines, causeOf } from './measure.ts';

/** Mermaid reserves `:`, `;`, `#`, quotes and angle brackets; a label has entity codes instead. */
function label(text: string): string {
  return text.replace(/[#;:"<>{}%]/g, (character) => `#${character.codePointAt(0)};`).replaceAll('\n', ' ');
}

/** `end`, `state` and the like are words of mermaid, so every identifier gets a prefix that none of them has. */
const identifier = (id: string): string => `s_${id.replace(/\W/g, '_')}`;

export interface MermaidOptions {
  /** Adds actions on entry, exit and transitions, and invoked actors. */
  readonly actions?: boolean;
}

/**
 * The machine as a mermaid `stateDiagram-v2`, which GitHub renders: compound states nested, events with guards on the
 * arrows, and the description of a state in its box. Without `actions` only the transition table has them.
 */
export function mermaidOf(graph: MachineGraph, { actions = false }: MermaidOptions = {}): string {
  const root = graph.nodes.find((node) => node.parent === null);
  const lines = ['stateDiagram-v2'];
  if (root) {
    const edgeLabel = actions ? fullLabel : plainLabel;
    writeChildren(graph, root, lines, 1);
    if (actions) for (const node of graph.nodes) if (node !== root) writeWork(node, lines);
    for (const edge of graph.edges) {
      if (edge.source !== root.id)
        lines.push(`  ${identifier(edge.source)} --> ${identifier(edge.target)} : ${edgeLabel(edge)}`);
    }
    // The root has no box of its own, so its transitions are written beside its first state.
    const everywhere = graph.edges.filter((edge) => edge.source === root.id);
    const first = graph.nodes.find((node) => node.parent === root.id);
    const work = actions ? boxLines(root).map(label) : [];
    if (first && everywhere.length + work.length > 0) {
      lines.push(`  note right of ${identifier(first.id)}`, '    in every state', ...work.map((line) => `    ${line}`));
      for (const edge of everywhere) {
        lines.push(`    ${edgeLabel(edge)}${edge.internal ? '' : ` → ${label(edge.target)}`}`);
      }
      lines.push('  end note');
    }
  }
  return `${lines.join('\n')}\n`;
}

const plainLabel = (edge: GraphEdge): string => label(edge.guard ? `${edge.event} [${edge.guard}]` : edge.event);

function fullLabel(edge: GraphEdge): string {
  const cause = causeOf(edge);
  const does = edge.actions.length > 0 ? ` / ${edge.actions.join(', ')}` : '';
  return label(`${edge.guard ? `${cause} [${edge.guard}]` : cause}${does}`);
}

/** In the box of a simple state; beside that of one that holds others, which has no room for it. */
function writeWork(node: GraphNode, lines: string[]): void {
  const work = boxLines(node).map(label);
  const id = identifier(node.id);
  if (work.length === 0) return;
  if (node.kind === 'compound' || node.kind === 'parallel') {
    lines.push(`  note right of ${id}`, ...work.map((line) => `    ${line}`), '  end note');
  } else lines.push(...work.map((line) => `  ${id} : ${line}`));
}

function writeChildren(graph: MachineGraph, parent: GraphNode, lines: string[], depth: number): void {
  const indent = '  '.repeat(depth);
  const children = graph.nodes.filter((node) => node.parent === parent.id);
  for (const [position, node] of children.entries()) {
    if (parent.kind === 'parallel' && position > 0) lines.push(`${indent}--`);
    const id = identifier(node.id);
    if (node.initial) lines.push(`${indent}[*] --> ${id}`);
    if (node.kind === 'compound' || node.kind === 'parallel') {
      lines.push(`${indent}state "${label(node.label)}" as ${id} {`);
      writeChildren(graph, node, lines, depth + 1);
      lines.push(`${indent}}`);
    } else {
      lines.push(`${indent}state "${label(node.label)}" as ${id}`);
      if (node.description) lines.push(`${indent}${id} : ${label(node.description)}`);
      if (node.kind === 'final') lines.push(`${indent}${id} --> [*]`);
    }
  }
}
