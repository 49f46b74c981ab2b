import type { Chart, ChartEdge, ChartNode } from '../protocol/index.ts';
import { boxLines, chartFont as font } from './measure.ts';
import type { Box } from './places.ts';

const escapes: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
export const escapeXml = (text: string): string => text.replace(/[&<>"]/g, (character) => escapes[character] ?? '');
export const round = (value: number): string => String(Math.round(value * 10) / 10);

const style = `
  svg { color-scheme: light dark; background: #fff; }
  text { font: 11px ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; fill: #4b5563; }
  .name { font: 600 13px ui-sans-serif, system-ui, sans-serif; fill: #16191d; }
  .event { fill: #1f2937; }
  .box { fill: #fff; stroke: #9aa4b2; }
  .compound > .box, .parallel > .box { fill: #f5f7f9; }
  .root > .box { fill: none; stroke: #d5dbe3; }
  .final > .box { stroke-width: 3; }
  .active > .box { stroke: #1d4b86; stroke-width: 2; fill: #e3edf9; }
  .edge { fill: none; stroke: #7b8794; }
  .halo { fill: #fff; fill-opacity: .85; }
  .arrow, .start { fill: #7b8794; }
  @media (prefers-color-scheme: dark) {
    svg { background: #0f1216; }
    text { fill: #9aa7b4; }
    .name { fill: #eef2f6; }
    .event { fill: #d3dae2; }
    .box { fill: #1b222b; stroke: #566270; }
    .compound > .box, .parallel > .box { fill: #161b21; }
    .root > .box { fill: none; stroke: #2b333d; }
    .active > .box { stroke: #8ab4f0; fill: #1c3252; }
    .edge { stroke: #76828f; }
    .halo { fill: #0f1216; }
    .arrow, .start { fill: #76828f; }
  }`;

/**
 * A chart as a stand-alone SVG document: no script, no font or style from elsewhere, light or dark as the reader's
 * system is. `active` lists state ids to light up.
 */
export function svgOf(chart: Chart, options: { readonly active?: readonly string[] } = {}): string {
  return svgDocument(chart, chart, wholeParts(chart, new Set(options.active)));
}

/** Document of a chart with these elements. */
export const svgDocument = (
  { name, description }: Chart,
  { width, height }: Pick<Box, 'width' | 'height'>,
  elements: readonly string[],
): string =>
  [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(`Statechart ${name}: ${description}`)}">`,
    `<style>${style}</style>`,
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class="arrow" d="M0 .8 7.5 4 0 7.2z"/></marker></defs>',
    ...elements,
    '</svg>',
    '',
  ].join('\n');

function wholeParts(chart: Chart, active: ReadonlySet<string>): string[] {
  const lines = new Set<string>();
  return [
    ...chart.nodes.map((node) => box(node, active)),
    ...chart.edges.flatMap((edge) => {
      const d = pathOf(edge.points);
      if (d === '' || lines.has(d)) return [];
      lines.add(d);
      return [`<path class="edge" marker-end="url(#arrow)" d="${d}"/>`];
    }),
    ...chart.edges.map(labelOf),
  ];
}

export const classesOf = (node: ChartNode, active?: ReadonlySet<string>): string =>
  [node.kind, ...(node.parent === null ? ['root'] : []), ...(active?.has(node.id) ? ['active'] : [])].join(' ');

export const titleOf = (node: ChartNode): string => `<title>${escapeXml(node.description || node.label)}</title>`;

export const textOf = (classes: string, x: number, y: number, text: string): string =>
  `<text class="${classes}" x="${round(x)}" y="${round(y)}">${escapeXml(text)}</text>`;

export const rectOf = (classes: string, { x, y, width, height }: Box, radius = 3): string =>
  `<rect class="${classes}" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" rx="${radius}"/>`;

/** SVG path through the points of an edge, its corners rounded. Empty for no points. */
export function pathOf(points: readonly ChartEdge['points'][number][], radius = 6): string {
  const [first, ...rest] = points;
  if (!first) return '';
  const parts = [`M${round(first.x)} ${round(first.y)}`];
  for (const [position, point] of rest.entries()) {
    const before = points[position] ?? point;
    const after = rest[position + 1];
    if (!after) {
      parts.push(`L${round(point.x)} ${round(point.y)}`);
      continue;
    }
    const inward = towards(point, before, radius);
    const outward = towards(point, after, radius);
    parts.push(
      `L${round(inward.x)} ${round(inward.y)}Q${round(point.x)} ${round(point.y)} ${round(outward.x)} ${round(outward.y)}`,
    );
  }
  return parts.join('');
}

function towards(
  from: { x: number; y: number },
  to: { x: number; y: number },
  radius: number,
): { x: number; y: number } {
  const distance = Math.hypot(to.x - from.x, to.y - from.y);
  if (distance === 0) return from;
  const share = Math.min(radius, distance / 2) / distance;
  return { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share };
}

function box(node: ChartNode, active: ReadonlySet<string>): string {
  const x = node.x + font.pad;
  const y = node.y + font.pad;
  const lines = boxLines(node).map(
    (line, index) =>
      `<text x="${round(x)}" y="${round(y + font.title + index * font.line + 10)}">${escapeXml(line)}</text>`,
  );
  return [
    `<g class="${classesOf(node, active)}">`,
    titleOf(node),
    rectOf('box', node, 6),
    ...(node.initial
      ? [`<circle class="start" cx="${round(node.x + font.pad + 3)}" cy="${round(y + 8)}" r="3.5"/>`]
      : []),
    textOf('name', x + (node.initial ? 12 : 0), y + 13, node.label),
    ...lines,
    '</g>',
  ].join('');
}

function labelOf(edge: ChartEdge): string {
  const lines = edge.label.split('\n');
  const width = Math.max(...lines.map((line) => line.length)) * font.character + 4;
  const { x, y } = edge.labelAt;
  const halo =
    edge.points.length === 0
      ? ''
      : `<rect class="halo" x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${lines.length * font.line}"/>`;
  const texts = lines.map(
    (line, index) =>
      `<text${index === 0 ? ' class="event"' : ''} x="${round(x + 2)}" y="${round(y + index * font.line + 10.5)}">${escapeXml(line)}</text>`,
  );
  return `<g><title>${escapeXml(edge.label.replaceAll('\n', ' '))}</title>${halo}${texts.join('')}</g>`;
}
