import { useLayoutEffect, useMemo, useRef } from 'preact/hooks';
import {
  type Box,
  boxLines,
  clauseWords,
  chartFont as font,
  type Line,
  pathOf,
  type Scene,
  type Words,
} from '../../../inspect/browser.ts';
import type { Chart, ChartEdge, ChartNode, StateStatistics } from '../../../protocol/index.ts';
import { duration } from '../../parts/format.ts';
import { lookOf } from '../../parts/tone.ts';
import type { Actor } from './model.ts';
import { placeWords } from './place-words.ts';
import { edgeTitle } from './states.ts';
import { heatOf, statisticsAt } from './statistics.ts';
import type { Store } from './store.ts';

/** Steps of the path whose lines fade with their age. */
const recentSteps = 5;

interface DrawingProps {
  readonly store: Store;
  readonly actor: Actor;
  readonly chart: Chart;
  readonly scene: Scene;
  readonly words: Words;
  /** Words stand beside every line of the path, not the last one only. */
  readonly isWide: boolean;
}

/** A chart: active states are lit, the path that the actor has taken is bold. The state decides classes and texts, never a place. */
export function Drawing({ store, actor, chart, scene, words, isWide }: DrawingProps) {
  const path = pathTaken(actor);
  const statistics = statisticsAt(actor, store.clock.value);
  const shares = store.showsHeat.value ? heatOf(statistics) : undefined;
  const pick = store.pick.value;
  const { tone } = lookOf(actor);
  const picked = (kind: 'state' | 'edge', id: string) => pick?.kind === kind && pick.id === id;
  const nodes = chart.nodes.map((node) => {
    const isFrame = scene.frames.has(node.id);
    return (
      <StateBox
        key={node.id}
        chart={chart}
        node={node}
        box={scene.boxes.get(node.id) ?? node}
        isFrame={isFrame}
        name={scene.names.get(node.id)}
        isWhole={scene.isWhole}
        tone={actor.states.includes(node.id) ? tone : null}
        statistics={isFrame ? undefined : statistics[node.id]}
        heat={shares?.get(node.id)}
        isPicked={picked('state', node.id)}
      />
    );
  });
  const isInner = (_: unknown, index: number) => !scene.frames.has(chart.nodes[index]?.id ?? '');
  const lines = scene.lines.map((line) => ({ line, age: path.ageOf(line.edges) }));
  // Lines of the path lie above the others.
  lines.sort((a, b) => (b.age ?? Number.POSITIVE_INFINITY) - (a.age ?? Number.POSITIVE_INFINITY) || 0);
  return (
    <>
      {nodes.filter((node, index) => !isInner(node, index))}
      {lines.map(({ line, age }) => (
        <Arrow
          key={line.id}
          line={line}
          age={age}
          step={age === 0 ? actor.log.at(-1)?.n : undefined}
          hasDot={scene.frames.has(line.source)}
          isPicked={line.edges.some(({ id }) => picked('edge', id))}
        />
      ))}
      {nodes.filter(isInner)}
      {scene.isWhole
        ? chart.edges.map((edge) => (
            <EdgeLabel
              key={edge.id}
              edge={edge}
              isTaken={(path.ageOf([edge]) ?? recentSteps) < recentSteps}
              isPicked={picked('edge', edge.id)}
            />
          ))
        : lines.length > 0 && <PathWords scene={scene} words={words} lines={lines} path={path} isWide={isWide} />}
    </>
  );
}

interface Path {
  /** Steps since one of these transitions was taken last; undefined: not in the log. */
  ageOf(edges: readonly ChartEdge[]): number | undefined;
}

/** The transitions in the log of an actor. */
function pathTaken({ log }: Actor): Path {
  const ages = new Map<string, number>();
  for (let index = log.length - 1; index >= 0; index -= 1) {
    for (const edge of log[index]?.record.edges ?? []) if (!ages.has(edge)) ages.set(edge, log.length - 1 - index);
  }
  return {
    ageOf(edges) {
      const known = edges.flatMap(({ id }) => ages.get(id) ?? []);
      return known.length === 0 ? undefined : Math.min(...known);
    },
  };
}

interface PathWordsProps extends Pick<DrawingProps, 'scene' | 'words' | 'isWide'> {
  readonly lines: readonly { readonly line: Line; readonly age: number | undefined }[];
  readonly path: Path;
}

/** Conditions of the transitions that were taken, in plain words: those that find room. */
function PathWords({ scene, words, lines, path, isWide }: PathWordsProps) {
  const wanted = lines
    .filter(({ age }) => age !== undefined && (isWide || age === 0))
    .reverse()
    .flatMap(({ line, age }) => {
      const edge = line.edges.find((each) => path.ageOf([each]) === age);
      return edge && edge.guard !== null ? [{ line, text: clauseWords(words, edge.guard) }] : [];
    });
  // The key holds everything that `wanted` depends on.
  const key = wanted.map(({ line, text }) => `${line.id} ${text}`).join('\n');
  const placed = useMemo(() => placeWords(scene, wanted), [scene, key]);
  return (
    <>
      {placed.map(({ x, y, width, height, text }) => (
        <g key={text} class="label">
          <rect class="halo" x={x} y={y} width={width} height={height} rx="3" />
          <FittedText class="words" x={x + 3} y={y + 10.5} text={text} room={width - 4} />
        </g>
      ))}
    </>
  );
}

interface StateBoxProps {
  readonly chart: Chart;
  readonly node: ChartNode;
  readonly box: Box;
  readonly isFrame: boolean;
  /** Rectangle of a frame's name. */
  readonly name: Box | undefined;
  readonly isWhole: boolean;
  /** Colour of an active state. */
  readonly tone: string | null;
  readonly statistics: StateStatistics | undefined;
  /** Share of the time, 0 to 1; undefined: not shown. */
  readonly heat: number | undefined;
  readonly isPicked: boolean;
}

function StateBox({ chart, node, box, isFrame, name, isWhole, tone, statistics, heat, isPicked }: StateBoxProps) {
  const isRoot = node.parent === null;
  const hasVisits = statistics !== undefined && statistics.visits > 0;
  const isEverywhere = chart.edges.some((edge) => edge.source === '' && edge.points.length > 0);
  const classes = [
    'node',
    node.kind,
    isRoot && (isEverywhere ? 'root everywhere' : 'root'),
    tone !== null && `active ${tone}`,
    hasVisits && 'visited',
    isPicked && 'picked',
    heat && 'heat',
  ];
  const [x, y] = isWhole ? [box.x + font.pad, box.y + font.pad + 12.5] : [box.x + 6, box.y + 14];
  const nameAt = x + (node.initial ? 10 : 0);
  return (
    <g
      class={classes.filter(Boolean).join(' ')}
      data-state={isFrame ? undefined : node.id}
      data-frame={isFrame ? node.id : undefined}
      style={heat ? { '--heat': `${Math.round(10 + heat * 65)}%` } : undefined}
    >
      <title>{node.description || node.label}</title>
      <rect class="box" x={box.x} y={box.y} width={box.width} height={box.height} rx="6" />
      {isFrame && !isWhole ? (
        name && (
          <g>
            <rect class="halo" {...name} />
            <FittedText class="name" x={name.x + 4} y={box.y + 4} text={node.label} room={name.width - 6} />
          </g>
        )
      ) : (
        <>
          {node.initial && <circle class="start" cx={x + 3} cy={y - 4} r="3" />}
          {!isRoot && (
            <FittedText class="name" x={nameAt} y={y} text={node.label} room={box.x + box.width - nameAt - 3} />
          )}
        </>
      )}
      {isWhole &&
        boxLines(node).map((line, index) => (
          <text key={line} class="line" x={x} y={box.y + font.pad + font.title + index * font.line + 10}>
            {line}
          </text>
        ))}
      {hasVisits && (
        <text class="count" data-count={node.id} x={box.x + box.width - 1} y={box.y + 0.5}>
          {`${statistics.visits}×${statistics.ms >= 1 ? ` ${duration(statistics.ms)}` : ''}`}
        </text>
      )}
    </g>
  );
}

interface ArrowProps {
  readonly line: Line;
  /** Steps since it was taken last; undefined: it was not. */
  readonly age: number | undefined;
  /** Number of the step that took it last, if it is the last step: a new one restarts the animation. */
  readonly step: number | undefined;
  readonly hasDot: boolean;
  readonly isPicked: boolean;
}

function Arrow({ line, age, step, hasDot, isPicked }: ArrowProps) {
  const d = pathOf(line.points, 5);
  const [start] = line.points;
  if (!start) return null;
  const isTaken = age !== undefined;
  const classes = ['edge', line.isSpine && 'spine', isTaken && 'taken', age === 0 && 'last', isPicked && 'picked'];
  return (
    <g data-pick={line.edges[0]?.id}>
      <title>{line.edges.map(edgeTitle).join('\n')}</title>
      <path class="reach" d={d} />
      <path
        key={step ?? 'still'}
        d={d}
        data-edge={line.id}
        class={classes.filter(Boolean).join(' ')}
        style={isTaken && age < recentSteps ? { '--age': age } : undefined}
        marker-end={`url(#arrow${isTaken ? '-path' : line.isSpine ? '-spine' : ''})`}
      />
      {hasDot && <circle class={isTaken ? 'start taken' : 'start'} cx={start.x} cy={start.y} r="2.6" />}
    </g>
  );
}

interface EdgeLabelProps {
  readonly edge: ChartEdge;
  readonly isTaken: boolean;
  readonly isPicked: boolean;
}

/** All words of a transition, as the whole chart has them. */
function EdgeLabel({ edge, isTaken, isPicked }: EdgeLabelProps) {
  const lines = edge.label.split('\n');
  const { x, y } = edge.labelAt;
  const width = Math.max(...lines.map((line) => line.length)) * font.character + 4;
  const classes = ['label', isTaken && 'taken', isPicked && 'picked'];
  return (
    <g class={classes.filter(Boolean).join(' ')} data-pick={edge.id}>
      <title>{edge.label.replaceAll('\n', ' ')}</title>
      <rect
        class={edge.points.length > 0 ? 'halo' : 'reach'}
        x={x - 2}
        y={y}
        width={width}
        height={lines.length * font.line}
        rx="3"
      />
      {lines.map((line, index) => (
        <text key={line} class={index === 0 ? 'event' : 'guard'} x={x} y={y + index * font.line + 10.5}>
          {line}
        </text>
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
function FittedText({ text, room, ...rest }: FittedTextProps) {
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
