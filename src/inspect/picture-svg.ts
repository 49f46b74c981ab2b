import type { Chart, ChartNode } from '../protocol/index.ts';
import type { Picture } from './picture.ts';
import { type Line, type Scene, sceneOf } from './scene.ts';
import { classesOf, escapeXml, pathOf, rectOf, round, svgDocument, textOf, titleOf } from './svg.ts';

/** Sizes and widths as on the page. The name of a frame has the colour of its frame behind it. */
const style = `
  .name { font: 11.5px ui-sans-serif, system-ui, sans-serif; }
  .halo { fill: #f5f7f9; fill-opacity: 1; }
  @media (prefers-color-scheme: dark) { .halo { fill: #161b21; } }
  .edge.spine { stroke-width: 2; }`;

/** A chart as a stand-alone SVG document with the places of a drawing, as on the page: states and lines, without the words of transitions. */
export function pictureSvg(chart: Chart, picture: Picture): string {
  const scene = sceneOf(chart, picture);
  return svgDocument(chart, scene, [`<style>${style}</style>`, ...drawnParts(chart, scene)]);
}

/** Frames, lines, then boxes: a line may end in a box, and crosses frames. */
function drawnParts(chart: Chart, scene: Scene): string[] {
  const nodes = chart.nodes.map((node) => ({ node, drawn: drawnBox(node, scene) }));
  const partsOf = (isFrame: boolean) =>
    nodes.filter(({ node }) => scene.frames.has(node.id) === isFrame).map(({ drawn }) => drawn);
  return [...partsOf(true), ...scene.lines.map((line) => drawnLine(line, scene)), ...partsOf(false)];
}

function drawnLine({ points, edges, isSpine, source }: Line, { frames }: Scene): string {
  const title = edges.map(({ label }) => label.replaceAll('\n', ' ')).join('\n');
  const [start] = points;
  const dot =
    start && frames.has(source) ? `<circle class="start" cx="${round(start.x)}" cy="${round(start.y)}" r="2.6"/>` : '';
  return `<g><title>${escapeXml(title)}</title><path class="edge${isSpine ? ' spine' : ''}" marker-end="url(#arrow)" d="${pathOf(points, 5)}"/>${dot}</g>`;
}

function drawnBox(node: ChartNode, { boxes, frames, names }: Scene): string {
  const at = boxes.get(node.id) ?? node;
  const name = names.get(node.id);
  const x = at.x + 6;
  const parts = name
    ? [rectOf('halo', name), textOf('name', name.x + 4, at.y + 4, node.label)]
    : [
        ...(node.initial ? [`<circle class="start" cx="${round(x + 3)}" cy="${round(at.y + 10)}" r="3"/>`] : []),
        ...(frames.has(node.id) ? [] : [textOf('name', x + (node.initial ? 10 : 0), at.y + 14, node.label)]),
      ];
  return [`<g class="drawn ${classesOf(node)}">`, titleOf(node), rectOf('box', at, 6), ...parts, '</g>'].join('');
}
