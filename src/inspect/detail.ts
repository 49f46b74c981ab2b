import type { GraphEdge, GraphNode, MachineGraph } from './graph.ts';
import { causeOf } from './measure.ts';
import { actionWords, guardWords, type Words } from './words.ts';

/**
 * Levels of detail: the first one whose words can be read at a size is drawn.
 * 0 event, condition and actions on arrows · 1 without actions · 2 without conditions · 3 numbers, whose words are in the list ·
 * 4 without arrows away from the focus · 5 only arrows that can be taken · 6 states two steps away become "3 more" ·
 * 7 those it came from too · 8 names only.
 */
export const levels = [0, 1, 2, 3, 4, 5, 6, 7, 8] as const;
export type Level = (typeof levels)[number];

/** Sizes of text in a drawing with levels, in CSS pixels. Names are 13 px, words 12 px. */
export const detailFont = {
  name: 13,
  words: 12,
  line: 15,
  pad: 8,
  nameCharacter: 7.6,
  eventCharacter: 7.3,
  character: 6.5,
} as const;

export interface DetailLine {
  readonly text: string;
  /** `event` is monospaced, `words` is prose. */
  readonly kind: 'event' | 'words';
}

export interface DetailNode {
  readonly id: string;
  /** Id of the open state around it; '' for the machine. */
  readonly parent: string;
  readonly label: string;
  /** Second line of a closed state: `▸ 6 states`. Empty: none. */
  readonly under: string;
  readonly kind: GraphNode['kind'];
  readonly initial: boolean;
  /** The box contains the drawn states of this state. */
  readonly isOpen: boolean;
  /** States that this box stands for: `3 more`. */
  readonly stands: readonly string[];
}

export interface DetailEdge {
  readonly id: string;
  readonly source: string;
  readonly target: string;
  /** Ids of the transitions that this arrow stands for. */
  readonly edges: readonly string[];
  /** A transition of this arrow can be taken in the focus. */
  readonly isPossible: boolean;
  readonly lines: readonly DetailLine[];
}

export interface Detail {
  readonly nodes: readonly DetailNode[];
  readonly edges: readonly DetailEdge[];
}

type Graph = Pick<MachineGraph, 'nodes' | 'edges'>;

/** Ids of a state and all around it but the machine, outermost first. */
export function pathTo(id: string): string[] {
  const keys = id === '' ? [] : id.split('.');
  return keys.map((_, index) => keys.slice(0, index + 1).join('.'));
}

/** The simple state that a focus on `id` leads to: initial states down from a composite one. */
export function leafOf(nodes: readonly Pick<GraphNode, 'id' | 'parent' | 'initial'>[], id: string): string {
  const children = nodes.filter((node) => node.parent === id);
  const first = children.find(({ initial }) => initial) ?? children[0];
  return first ? leafOf(nodes, first.id) : id;
}

/** Simple states of a machine: each has a drawing of its own. */
export function leavesOfGraph(nodes: readonly Pick<GraphNode, 'id' | 'parent'>[]): string[] {
  return nodes.filter(({ id }) => id !== '' && !nodes.some(({ parent }) => parent === id)).map(({ id }) => id);
}

/** Transitions that leave these states or are handled in them, the innermost states' first: those have precedence. */
export function possibleIn<Edge extends Pick<GraphEdge, 'source'>>(
  edges: readonly Edge[],
  states: readonly string[],
): Edge[] {
  return edges
    .filter(({ source }) => source === '' || states.includes(source))
    .sort((a, b) => b.source.length - a.source.length);
}

/** Draws a machine around a focus, a simple state: only the states around that one are open. Only phones leave states out. */
export function detailOf(
  graph: Graph,
  words: Words,
  focus: string,
  level: Level,
  pane: 'desktop' | 'phone' = 'phone',
): Detail {
  const path = pathTo(focus);
  const isShown = ({ parent }: GraphNode) => parent === '' || (parent !== null && path.includes(parent));
  const shown = graph.nodes.filter(isShown);
  const visible = new Set(shown.map(({ id }) => id));
  const possible = possibleIn(graph.edges, path);
  const arrows = lifted(graph, visible).filter(({ source, target, edges }) => {
    if (level >= 8) return false;
    if (level >= 5) return edges.some((edge) => possible.includes(edge));
    return level < 4 || path.includes(source) || path.includes(target);
  });
  const hidden =
    level < 6 || pane === 'desktop' ? new Set<string>() : farFrom(path, shown, lifted(graph, visible), level);
  const standIn = (id: string): string => {
    const node = shown.find((each) => each.id === id);
    return node && hidden.has(id) ? moreOf(node.parent ?? '') : id;
  };
  return {
    nodes: nodesOf(graph, shown, path, hidden),
    edges: arrows
      .filter(({ source, target }) => !hidden.has(source) && !hidden.has(target))
      .map(({ source, target, edges }) => {
        const taken = edges.filter((edge) => possible.includes(edge));
        return {
          id: `${source}→${target}`,
          source: standIn(source),
          target: standIn(target),
          edges: edges.map(({ id }) => id),
          isPossible: taken.length > 0,
          lines: linesOf(taken, possible, words, level),
        };
      }),
  };
}

/** Id of the box that stands for the states left out of a state. */
const moreOf = (parent: string): string => (parent === '' ? '+' : `${parent}.+`);

interface Arrow {
  readonly source: string;
  readonly target: string;
  readonly edges: readonly GraphEdge[];
}

/** Arrows between visible states: an arrow of a state that is not drawn begins at the box around it. */
function lifted({ edges }: Graph, visible: ReadonlySet<string>): Arrow[] {
  const lift = (id: string): string => pathTo(id).findLast((each) => visible.has(each)) ?? '';
  const arrows = new Map<string, Arrow>();
  for (const edge of edges) {
    // Transitions of the machine itself are in the list only: an arrow from the frame would cross all.
    if (edge.internal || edge.source === '') continue;
    const [source, target] = [lift(edge.source), lift(edge.target)];
    if (source === target && (edge.source !== edge.target || source !== edge.source)) continue;
    const key = `${source}→${target}`;
    arrows.set(key, { source, target, edges: [...(arrows.get(key)?.edges ?? []), edge] });
  }
  return [...arrows.values()];
}

/** States that are not next to the focus: two steps away, at level 7 also those that only lead to it. */
function farFrom(
  path: readonly string[],
  shown: readonly GraphNode[],
  arrows: readonly Arrow[],
  level: Level,
): Set<string> {
  const near = new Set(path);
  for (const { source, target } of arrows) {
    if (level < 8 && path.includes(source)) near.add(target);
    if (level < 7 && path.includes(target)) near.add(source);
  }
  const far = shown.filter(({ id }) => !near.has(id));
  // A box for one state is as large as the state.
  const crowds = far.filter(({ parent }) => far.filter((each) => each.parent === parent).length > 1);
  return new Set(crowds.map(({ id }) => id));
}

function nodesOf(
  graph: Graph,
  shown: readonly GraphNode[],
  path: readonly string[],
  hidden: ReadonlySet<string>,
): DetailNode[] {
  const leaf = path.at(-1);
  const drawn = shown
    .filter(({ id }) => !hidden.has(id))
    .map((node): DetailNode => {
      const inner = graph.nodes.filter(({ parent }) => parent === node.id).length;
      const isOpen = inner > 0 && node.id !== leaf && path.includes(node.id);
      return {
        id: node.id,
        parent: node.parent ?? '',
        label: node.label,
        under: inner > 0 && !isOpen ? `▸ ${inner} states` : '',
        kind: node.kind,
        initial: node.initial,
        isOpen,
        stands: [],
      };
    });
  const more = [...new Set(shown.filter(({ id }) => hidden.has(id)).map(({ parent }) => parent ?? ''))].map(
    (parent): DetailNode => {
      const stands = shown.filter((node) => node.parent === parent && hidden.has(node.id)).map(({ id }) => id);
      return {
        id: moreOf(parent),
        parent,
        label: `${stands.length} more`,
        under: '',
        kind: 'atomic',
        initial: false,
        isOpen: false,
        stands,
      };
    },
  );
  return [...drawn, ...more];
}

function linesOf(
  taken: readonly GraphEdge[],
  possible: readonly GraphEdge[],
  words: Words,
  level: Level,
): DetailLine[] {
  if (taken.length === 0) return [];
  if (level >= 3) return [{ text: taken.map((edge) => possible.indexOf(edge) + 1).join(' '), kind: 'event' }];
  const lines = taken.flatMap((edge): DetailLine[] => {
    const prose = [
      ...(level < 2 && edge.guard !== null ? wrapped(guardWords(words, edge.guard)) : []),
      ...(level < 1 && edge.actions.length > 0
        ? wrapped(`→ ${edge.actions.map((name) => actionWords(words, name)).join('; ')}`)
        : []),
    ];
    return [{ text: causeOf(edge), kind: 'event' }, ...prose.map((text): DetailLine => ({ text, kind: 'words' }))];
  });
  return level < 2 ? lines : lines.filter(({ text }, index) => lines.findIndex((each) => each.text === text) === index);
}

const lineLength = 30;

/** Breaks prose into lines of moderate length, between words. */
function wrapped(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const longer = lines.length === 0 ? word : `${lines.at(-1)} ${word}`;
    if (lines.length > 0 && longer.length <= lineLength) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}

/** Room for the words of an arrow. */
export function detailLabelSize(lines: readonly DetailLine[]): { width: number; height: number } {
  const { eventCharacter, character, line } = detailFont;
  const widths = lines.map(({ text, kind }) => text.length * (kind === 'event' ? eventCharacter : character));
  return { width: Math.ceil(Math.max(0, ...widths)) + 8, height: lines.length * line };
}

/** Room for a box; for the head of an open one. */
export function detailBoxSize({ label, under, initial }: Pick<DetailNode, 'label' | 'under' | 'initial'>): {
  width: number;
  height: number;
} {
  const { nameCharacter, character, line, pad } = detailFont;
  const name = label.length * nameCharacter + (initial ? 12 : 0);
  return {
    width: Math.ceil(Math.max(name, under.length * character, 32)) + 2 * pad,
    height: 17 + (under === '' ? 0 : line) + 2 * (pad - 2),
  };
}
