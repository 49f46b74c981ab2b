import { useLayoutEffect, useRef } from 'preact/hooks';
import {
  type Detail,
  type DetailEdge,
  type DetailNode,
  detailLabelSize,
  detailFont as font,
  type Picture,
  pathOf,
} from '../../../inspect/browser.ts';
import type { Chart } from '../../../protocol/index.ts';
import { lookOf } from '../../parts/tone.ts';
import { useFlashes } from './drawing.tsx';
import type { Actor } from './model.ts';
import { Count } from './state-count.tsx';
import { heatOf, statisticsAt } from './statistics.ts';
import type { Store } from './store.ts';

interface DetailProps {
  readonly store: Store;
  readonly actor: Actor;
  readonly chart: Chart;
  readonly detail: Detail;
  readonly picture: Picture;
  /** State that the drawing is made around. */
  readonly focus: string;
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A chart around a focus: other composite states are closed, words only on the arrows that can be taken. */
export function DetailDrawing({ store, actor, chart, detail, picture, focus }: DetailProps) {
  const last = actor.log.at(-1);
  const taken = new Set(last?.record.edges);
  const flashes = useFlashes(store, actor);
  const { counts, heat } = store.shows.value;
  const statistics = counts || heat ? statisticsAt(actor, store.clock.value) : {};
  const shares = heat ? heatOf(statistics) : undefined;
  const pick = store.pick.value;
  return (
    <>
      {detail.nodes.map((node, index) => (
        <StateBox
          key={node.id}
          node={node}
          box={boxAt(picture, index)}
          description={chart.nodes.find(({ id }) => id === node.id)?.description ?? ''}
          tone={actor.states.includes(node.id) ? lookOf(actor).tone : null}
          inside={node.isOpen ? '' : (activeInside(node, actor.states) ?? '')}
          heat={shares?.get(node.id)}
          isPicked={pick?.kind === 'state' && pick.id === node.id}
          isFocus={node.id === focus}
        />
      ))}
      {detail.edges.map((edge, index) => (
        <Arrow
          key={edge.id}
          edge={edge}
          numbers={picture.arrows[index] ?? []}
          isTaken={edge.edges.some((id) => taken.has(id))}
          flash={edge.edges.map((id) => flashes.get(id)).find((n) => n !== undefined)}
          isPicked={pick?.kind === 'edge' && edge.edges.includes(pick.id)}
        />
      ))}
      {detail.edges.map((edge, index) => (
        <Words
          key={edge.id}
          edge={edge}
          numbers={picture.arrows[index] ?? []}
          isTaken={edge.edges.some((id) => taken.has(id))}
        />
      ))}
      {counts &&
        detail.nodes.map((node, index) => (
          <Count key={node.id} id={node.id} box={boxAt(picture, index)} statistics={statistics} />
        ))}
    </>
  );
}

function boxAt({ boxes }: Picture, index: number): Box {
  const [x = 0, y = 0, width = 0, height = 0] = boxes.slice(4 * index, 4 * index + 4);
  return { x, y, width, height };
}

/** Name of the active state that a closed box holds. */
function activeInside({ id, stands }: DetailNode, states: readonly string[]): string | undefined {
  const leaf = states.findLast((state) => state.startsWith(`${id}.`) || stands.includes(state));
  return leaf?.split('.').at(-1);
}

interface StateBoxProps {
  readonly node: DetailNode;
  readonly box: Box;
  readonly description: string;
  /** Colour of an active state. */
  readonly tone: string | null;
  /** Active state inside a closed one. Empty: none. */
  readonly inside: string;
  readonly heat: number | undefined;
  readonly isPicked: boolean;
  readonly isFocus: boolean;
}

function StateBox({ node, box, description, tone, inside, heat, isPicked, isFocus }: StateBoxProps) {
  const x = box.x + font.pad;
  const y = box.y + font.pad;
  const nameAt = x + (node.initial ? 12 : 0);
  const right = box.x + box.width - font.pad / 2;
  const kind = node.under === '' ? node.kind : 'closed';
  const classes = [
    'node',
    node.isOpen ? 'compound' : kind,
    tone !== null && `active ${tone}`,
    isPicked && 'picked',
    isFocus && 'focus',
    heat && 'heat',
    node.stands.length > 0 && 'more',
  ];
  const under = node.under !== '' && inside !== '' ? `▸ ${short(inside, box.width)}` : node.under;
  return (
    <g
      class={classes.filter(Boolean).join(' ')}
      data-state={node.id}
      data-stands={node.stands[0]}
      style={heat ? { '--heat': `${Math.round(10 + heat * 65)}%` } : undefined}
    >
      <title>{description || node.stands.join(', ') || node.label}</title>
      <rect class="box" x={box.x} y={box.y} width={box.width} height={box.height} rx="6" />
      {node.initial && <circle class="start" cx={x + 3} cy={y + 6} r="3.5" />}
      <FittedText class="name" x={nameAt} y={y + 11} text={node.label} room={right - nameAt} />
      {under !== '' && <FittedText class="words" x={x} y={y + 11 + font.line} text={under} room={right - x} />}
    </g>
  );
}

/** Cuts a name to the width of a box. */
function short(name: string, width: number): string {
  const most = Math.max(4, Math.floor((width - 2 * font.pad) / font.character) - 2);
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

interface ArrowProps {
  readonly edge: DetailEdge;
  readonly numbers: readonly number[];
  readonly isTaken: boolean;
  /** Distinguishes a flash from the one before; undefined: it does not flash. */
  readonly flash: number | undefined;
  readonly isPicked: boolean;
}

function Arrow({ edge, numbers, isTaken, flash, isPicked }: ArrowProps) {
  const d = pathOf(pairs(numbers.slice(2)));
  if (d === '') return null;
  const isFresh = flash !== undefined;
  const classes = [
    'edge',
    edge.isPossible ? 'possible' : 'far-off',
    isTaken && 'taken',
    isFresh && 'fresh',
    isPicked && 'picked',
  ];
  return (
    <g data-edge={edge.edges[0]}>
      <path class="reach" d={d} />
      <path
        // Each flash is a new element, so that its animation restarts.
        key={flash ?? 'still'}
        d={d}
        class={classes.filter(Boolean).join(' ')}
        marker-end={`url(#arrow${isFresh ? '-fresh' : isTaken ? '-taken' : ''})`}
      />
    </g>
  );
}

const pairs = (numbers: readonly number[]): { x: number; y: number }[] =>
  Array.from({ length: Math.floor(numbers.length / 2) }, (_, index) => ({
    x: numbers[2 * index] ?? 0,
    y: numbers[2 * index + 1] ?? 0,
  }));

function Words({ edge, numbers, isTaken }: Pick<ArrowProps, 'edge' | 'numbers' | 'isTaken'>) {
  const [x = 0, y = 0] = numbers;
  if (edge.lines.length === 0) return null;
  const { width, height } = detailLabelSize(edge.lines);
  return (
    <g class={`label ${isTaken ? 'taken' : ''}`} data-edge={edge.edges[0]}>
      <rect class="halo" x={x - 2} y={y} width={width - 4} height={height} rx="3" />
      {edge.lines.map(({ text, kind }, index) => (
        <FittedText
          key={`${index}:${text}`}
          class={kind}
          x={x}
          y={y + index * font.line + 11.5}
          text={text}
          room={width - 6}
        />
      ))}
    </g>
  );
}

interface FittedTextProps {
  readonly class: string;
  readonly x: number;
  readonly y: number;
  readonly text: string;
  /** Largest width, in the units of the drawing. */
  readonly room: number;
}

/** One line of text, condensed if the system's font is wider than the font that the drawing was made for. */
export function FittedText({ text, room, ...rest }: FittedTextProps) {
  const line = useRef<SVGTextElement>(null);
  useLayoutEffect(() => {
    const element = line.current;
    if (!element) return;
    element.removeAttribute('textLength');
    if (element.getComputedTextLength() <= room) return;
    element.setAttribute('lengthAdjust', 'spacingAndGlyphs');
    element.setAttribute('textLength', String(room));
  }, [text, room]);
  return (
    <text ref={line} {...rest}>
      {text}
    </text>
  );
}
