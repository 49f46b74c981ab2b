import type { Box, Line, Scene } from '../../../inspect/browser.ts';

/** Label beside a line. */
export interface PlacedWords extends Box {
  readonly text: string;
}

/** Largest width of a character in a label, in CSS pixels. */
const wordsCharacter = 6.3;

/** Places labels beside their lines, in order, where they cover no box, no name and few lines. Leaves out labels without space. */
export function placeWords(
  scene: Scene,
  wanted: readonly { readonly line: Line; readonly text: string }[],
): PlacedWords[] {
  const blocked: Box[] = [
    ...[...scene.boxes]
      .filter(([id]) => !scene.frames.has(id))
      .map(([, box]) => ({ ...box, y: box.y - 10, height: box.height + 12 })),
    ...scene.names.values(),
  ];
  const placed: PlacedWords[] = [];
  for (const { line, text } of wanted) {
    const size = { width: text.length * wordsCharacter + 6, height: 14 };
    let best: { readonly box: Box; readonly covered: number } | undefined;
    for (const { x, y } of besideOf(line.points, size)) {
      const box = { x, y, ...size };
      const isOutside = x < 4 || y < 2 || x + size.width > scene.width - 4 || y + size.height > scene.height - 2;
      if (isOutside || blocked.some((other) => meet(box, other))) continue;
      const covered = scene.lines.filter(({ points }) =>
        segmentsOf(points).some((segment) => meet(box, segment)),
      ).length;
      if (covered < (best?.covered ?? 3)) best = { box, covered };
    }
    if (!best) continue;
    placed.push({ ...best.box, text });
    blocked.push(best.box);
  }
  return placed;
}

/** Possible corners for a label beside each long segment of a line. */
function besideOf(points: Line['points'], { width, height }: Pick<Box, 'width' | 'height'>): Line['points'] {
  return segmentsOf(points)
    .sort((a, b) => b.width + b.height - a.width - a.height)
    .flatMap(({ x, y, width: across, height: down }) =>
      [0.5, 0.25, 0.75].flatMap((part) =>
        down === 0
          ? [
              { x: x + across * part - width / 2, y: y - height - 2 },
              { x: x + across * part - width / 2, y: y + 3 },
            ]
          : [
              { x: x + 4, y: y + down * part - height / 2 },
              { x: x - width - 4, y: y + down * part - height / 2 },
            ],
      ),
    );
}

const segmentsOf = (points: Line['points']): Box[] =>
  points.slice(1).map((point, index) => {
    const before = points[index] ?? point;
    return {
      x: Math.min(before.x, point.x),
      y: Math.min(before.y, point.y),
      width: Math.abs(before.x - point.x),
      height: Math.abs(before.y - point.y),
    };
  });

const meet = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
