import { type Box, countWidth, type Placement, type Span } from './places.ts';

/** A line to be drawn: from a box or the frame of a state to a box or a frame. */
export interface Wire {
  readonly source: string;
  readonly target: string;
  /** Part of the normal loop: routed first. */
  readonly isSpine: boolean;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Prices of a line, by step of the grid. A trunk that leads to the same state is cheap, another line is nearly a wall. */
const price = {
  step: 10,
  trunk: 5,
  bend: 70,
  crossing: 130,
  taken: 4_000,
  besideLine: 9,
  besideBox: 9,
  onBorder: 90,
  besideBorder: 5,
  foreignFrame: 16,
  name: 160,
  count: 25,
  offMiddle: 2,
} as const;

const rounds = 5;

/** Right, down, left, up. */
const [right, down, left, up] = [0, 1, 2, 3] as const;
type Way = 0 | 1 | 2 | 3;
const ways: readonly Way[] = [right, down, left, up];
const dx = [1, 0, -1, 0] as const;
const dy = [0, 1, 0, -1] as const;

/**
 * Routes lines on the grid around boxes: each by A*, then, for some rounds, each again with all others in place. Lines to the same
 * target may share a trunk; others only cross. Returns the corners of each line. The same input gives the same lines.
 */
export function routesOf(placement: Placement, frames: ReadonlySet<string>, wires: readonly Wire[]): Point[][] {
  const router = new Router(placement, frames);
  const length = ({ source, target }: Wire): number => {
    const [a, b] = [router.boxOf(source), router.boxOf(target)];
    return Math.abs(a.x + a.width / 2 - b.x - b.width / 2) + Math.abs(a.y + a.height / 2 - b.y - b.height / 2);
  };
  const order = wires
    .map((_, index) => index)
    .sort((a, b) => {
      const [first, second] = [wires[a], wires[b]];
      if (!first || !second) return a - b;
      return Number(second.isSpine) - Number(first.isSpine) || length(first) - length(second) || a - b;
    });
  const routes: number[][] = wires.map(() => []);
  for (let round = 0; round <= rounds; round += 1) {
    for (const index of order) {
      const wire = wires[index];
      if (!wire) continue;
      router.remove(index, routes[index] ?? []);
      const route = router.route(index, wire);
      routes[index] = route;
      router.add(index, wire, route);
    }
  }
  return routes.map((route) => router.cornersOf(route));
}

class Router {
  readonly #columns: number;
  readonly #rows: number;
  readonly #boxes: ReadonlyMap<string, Box>;
  readonly #frames: ReadonlySet<string>;
  readonly #names: ReadonlyMap<string, Span>;
  /** 1: a vertex in or on a box. */
  readonly #solid: Uint8Array;
  /** Price of a vertex for every line. */
  readonly #toll: Int32Array;
  /** Borders of frames: bit 1 on a horizontal border, bit 2 on a vertical one. */
  readonly #border: Uint8Array;
  /** Lines by the piece that begins at a vertex and leads right or down: twice the number, plus 1 when against that way. */
  readonly #pieces: readonly [number[][], number[][]];
  readonly #targets = new Map<number, string>();

  constructor({ width, height, boxes, names }: Placement, frames: ReadonlySet<string>) {
    this.#names = names;
    this.#columns = width + 1;
    this.#rows = height + 1;
    this.#boxes = boxes;
    this.#frames = frames;
    const size = this.#columns * this.#rows;
    this.#solid = new Uint8Array(size);
    this.#toll = new Int32Array(size);
    this.#border = new Uint8Array(size);
    const none = (): number[][] => Array.from({ length: size }, () => []);
    this.#pieces = [none(), none()];
    for (const [id, box] of boxes) {
      if (frames.has(id)) this.#fence(id, box);
      else this.#wall(box);
    }
  }

  boxOf(id: string): Box {
    const box = this.#boxes.get(id);
    if (!box) throw new Error(`State ${id} has no place.`);
    return box;
  }

  #at(x: number, y: number): number {
    return y * this.#columns + x;
  }

  /** Runs over the vertices of a rectangle that lie in the drawing. */
  #within(x0: number, y0: number, x1: number, y1: number, visit: (vertex: number) => void): void {
    for (let y = Math.max(0, y0); y <= Math.min(this.#rows - 1, y1); y += 1)
      for (let x = Math.max(0, x0); x <= Math.min(this.#columns - 1, x1); x += 1) visit(this.#at(x, y));
  }

  #charge(x0: number, y0: number, x1: number, y1: number, toll: number): void {
    this.#within(x0, y0, x1, y1, (vertex) => {
      this.#toll[vertex] = (this.#toll[vertex] ?? 0) + toll;
    });
  }

  #wall({ x, y, width, height }: Box): void {
    this.#within(x, y, x + width, y + height, (vertex) => {
      this.#solid[vertex] = 1;
    });
    this.#charge(x - 1, y - 1, x + width + 1, y + height + 1, price.besideBox);
    this.#charge(x + width - countWidth, y - 1, x + width, y - 1, price.count);
  }

  #fence(id: string, { x, y, width, height }: Box): void {
    const [x1, y1] = [x + width, y + height];
    for (const row of [y, y1]) {
      this.#within(x, row, x1, row, (vertex) => {
        this.#border[vertex] = (this.#border[vertex] ?? 0) | 1;
      });
      if (id !== '') this.#charge(x, row - 1, x1, row + 1, price.besideBorder);
    }
    for (const column of [x, x1]) {
      this.#within(column, y, column, y1, (vertex) => {
        this.#border[vertex] = (this.#border[vertex] ?? 0) | 2;
      });
      if (id !== '') this.#charge(column - 1, y, column + 1, y1, price.besideBorder);
    }
    const name = this.#names.get(id);
    if (name) this.#charge(name.x, y - 1, name.x + name.width, y + 1, price.name);
  }

  /** Ends of a line at a state: the vertex on the border and the way that leads away from it. */
  *#ends(
    id: string,
    other: string,
    isLoopEnd: boolean | undefined,
  ): Generator<{ vertex: number; away: Way; price: number }> {
    const box = this.boxOf(id);
    const { x, y, width, height } = box;
    const isFrame = this.#frames.has(id);
    const isInward = isFrame && id !== other && (id === '' || other.startsWith(`${id}.`));
    const turn = (way: Way): Way => (isInward ? (((way + 2) % 4) as Way) : way);
    const name = this.#names.get(id);
    const middle = (at: number, from: number, size: number) =>
      Math.round(Math.abs(at - from - size / 2)) * price.offMiddle;
    const edge = isFrame ? 2 : 1;
    for (let at = x + edge; at <= x + width - edge; at += 1) {
      const isFree = name
        ? at < name.x || at > name.x + name.width
        : isFrame || at <= Math.max(x + 2, x + width - countWidth);
      const cost = isFrame ? 0 : middle(at, x, width);
      if (isFree && isLoopEnd !== true) yield { vertex: this.#at(at, y), away: turn(up), price: cost };
      if (isLoopEnd !== false && (isFrame || at > x + 1))
        yield { vertex: this.#at(at, y + height), away: turn(down), price: cost };
    }
    const side = isFrame ? edge : 2;
    for (let at = y + side; at <= y + height - side; at += 1) {
      const cost = isFrame ? 0 : middle(at, y, height);
      if (isLoopEnd === undefined) yield { vertex: this.#at(x, at), away: turn(left), price: cost };
      if (isLoopEnd !== true) yield { vertex: this.#at(x + width, at), away: turn(right), price: cost };
    }
  }

  #step(vertex: number, way: Way): number {
    return vertex + dx[way] + dy[way] * this.#columns;
  }

  /** The piece between a vertex and the next one in a way: its list of lines, and whether it is used against its direction. */
  #piece(vertex: number, way: Way): number[] {
    const start = way === left || way === up ? this.#step(vertex, way) : vertex;
    return this.#pieces[way % 2 === 0 ? 0 : 1][start] ?? [];
  }

  add(index: number, { target }: Wire, route: readonly number[]): void {
    this.#targets.set(index, target);
    this.#each(route, (piece, sign) => piece.push(2 * index + sign));
  }

  remove(index: number, route: readonly number[]): void {
    this.#each(route, (piece) => {
      const at = piece.findIndex((line) => line >> 1 === index);
      if (at >= 0) piece.splice(at, 1);
    });
  }

  #each(route: readonly number[], visit: (piece: number[], sign: number) => void): void {
    for (let at = 1; at < route.length; at += 1) {
      const [from, to] = [route[at - 1] ?? 0, route[at] ?? 0];
      const way = this.#wayOf(from, to);
      visit(this.#piece(from, way), way === left || way === up ? 1 : 0);
    }
  }

  #wayOf(from: number, to: number): Way {
    return ways.find((way) => this.#step(from, way) === to) ?? right;
  }

  /** Price of a piece: cheap on a trunk to the same target, nearly forbidden on any other line. */
  #pieceToll(vertex: number, way: Way, target: string): number {
    let isTrunk = false;
    const sign = way === left || way === up ? 1 : 0;
    for (const line of this.#piece(vertex, way)) {
      if (this.#targets.get(line >> 1) !== target || (line & 1) !== sign) return price.taken;
      isTrunk = true;
    }
    return isTrunk ? price.trunk : price.step;
  }

  /** Price of passing a vertex where other lines are. */
  #vertexToll(vertex: number, came: Way, goes: Way, target: string): number {
    let toll = 0;
    const isForeign = (line: number) => this.#targets.get(line >> 1) !== target;
    if (came !== goes) {
      for (const way of ways) if (this.#piece(vertex, way).some(isForeign)) toll += price.taken;
      return toll;
    }
    const [one, other] = came % 2 === 0 ? ([up, down] as const) : ([left, right] as const);
    const [before, after] = [this.#piece(vertex, one), this.#piece(vertex, other)];
    for (const line of before) {
      const isStraight = after.some((each) => each >> 1 === line >> 1);
      toll += isStraight ? price.crossing : isForeign(line) ? price.taken : 0;
    }
    for (const line of after) {
      if (!before.some((each) => each >> 1 === line >> 1) && isForeign(line)) toll += price.taken;
    }
    return toll;
  }

  #neighbourToll(vertex: number, way: Way, target: string): number {
    let toll = 0;
    for (const side of way % 2 === 0 ? ([up, down] as const) : ([left, right] as const)) {
      const beside = this.#step(vertex, side);
      if (beside < 0 || beside >= this.#solid.length) continue;
      if (this.#piece(beside, way).some((line) => this.#targets.get(line >> 1) !== target)) toll += price.besideLine;
    }
    return toll;
  }

  /** Vertices of the cheapest line; throws when every way is closed. */
  route(index: number, { source, target }: Wire): number[] {
    const size = this.#solid.length;
    const foreign = this.#foreignTolls(source, target);
    const costs = new Int32Array(4 * size).fill(-1);
    const previous = new Int32Array(4 * size).fill(-1);
    const isLoop = source === target;
    const goals = new Map<number, { readonly vertex: number; readonly price: number }>();
    for (const end of this.#ends(target, source, isLoop ? true : undefined)) {
      const before = this.#step(end.vertex, end.away);
      if (this.#isOpen(before)) {
        // A line goes straight before its arrowhead; the loop of a state has no room for that.
        const inward = ((end.away + 2) % 4) as Way;
        for (const way of isLoop ? ways : [inward])
          if (way !== end.away) goals.set(4 * before + way, { vertex: end.vertex, price: end.price });
      }
    }
    const box = this.boxOf(target);
    const rest = (vertex: number): number => {
      const [x, y] = [vertex % this.#columns, Math.floor(vertex / this.#columns)];
      const outX = Math.max(0, box.x - x, x - box.x - box.width);
      const outY = Math.max(0, box.y - y, y - box.y - box.height);
      return (outX + outY) * price.trunk;
    };
    const queue = new Buckets();
    const starts = new Map<number, number>();
    const offer = (state: number, cost: number, from: number): void => {
      const known = costs[state] ?? -1;
      if (known >= 0 && known <= cost) return;
      costs[state] = cost;
      previous[state] = from;
      queue.push(cost + rest(state >> 2), state);
    };
    for (const start of this.#ends(source, target, isLoop ? false : undefined)) {
      const first = this.#step(start.vertex, start.away);
      if (!this.#isOpen(first)) continue;
      const state = 4 * first + start.away;
      const cost =
        start.price +
        this.#pieceToll(start.vertex, start.away, target) +
        (this.#toll[first] ?? 0) +
        (foreign[first] ?? 0);
      const known = costs[state] ?? -1;
      if (known >= 0 && known <= cost) continue;
      starts.set(state, start.vertex);
      offer(state, cost, -1);
    }
    let best = -1;
    let bestCost = Number.POSITIVE_INFINITY;
    for (let entry = queue.pop(); entry; entry = queue.pop()) {
      const { key, state } = entry;
      if (key >= bestCost) break;
      const [vertex, came] = [state >> 2, (state & 3) as Way];
      const cost = costs[state] ?? 0;
      if (key > cost + rest(vertex)) continue;
      const goal = goals.get(state);
      if (goal) {
        const whole =
          cost + goal.price + this.#vertexToll(vertex, came, came, target) + this.#pieceToll(vertex, came, target);
        if (whole < bestCost) [best, bestCost] = [state, whole];
      }
      for (const way of ways) {
        if ((way + 2) % 4 === came) continue;
        const next = this.#step(vertex, way);
        if (!this.#isOpen(next)) continue;
        const onBorder = (this.#border[vertex] ?? 0) & (this.#border[next] ?? 0) & (way % 2 === 0 ? 1 : 2);
        offer(
          4 * next + way,
          cost +
            this.#pieceToll(vertex, way, target) +
            (way === came ? 0 : price.bend) +
            this.#vertexToll(vertex, came, way, target) +
            this.#neighbourToll(vertex, way, target) +
            (onBorder ? price.onBorder : 0) +
            (this.#toll[next] ?? 0) +
            (foreign[next] ?? 0),
          state,
        );
      }
    }
    if (best < 0) throw new Error(`No line leads from ${source} to ${target} (${index}).`);
    const route = [goals.get(best)?.vertex ?? 0];
    let state = best;
    for (;;) {
      route.unshift(state >> 2);
      const before = previous[state] ?? -1;
      if (before < 0) break;
      state = before;
    }
    route.unshift(starts.get(state) ?? 0);
    return route;
  }

  /** Not in a box, and not on the edge of the drawing. */
  #isOpen(vertex: number): boolean {
    const [x, y] = [vertex % this.#columns, Math.floor(vertex / this.#columns)];
    return x >= 1 && y >= 1 && x < this.#columns - 1 && y < this.#rows - 1 && this.#solid[vertex] === 0;
  }

  /** Tolls in the frames that hold neither end of a line. */
  #foreignTolls(source: string, target: string): Int32Array {
    const tolls = new Int32Array(this.#solid.length);
    for (const id of this.#frames) {
      const holds = (end: string) => id === '' || end === id || end.startsWith(`${id}.`);
      if (holds(source) || holds(target)) continue;
      const { x, y, width, height } = this.boxOf(id);
      this.#within(x, y, x + width, y + height, (vertex) => {
        tolls[vertex] = (tolls[vertex] ?? 0) + price.foreignFrame;
      });
    }
    return tolls;
  }

  cornersOf(route: readonly number[]): Point[] {
    const corners = route.filter((vertex, at) => {
      const [before, after] = [route[at - 1], route[at + 1]];
      return before === undefined || after === undefined || after - vertex !== vertex - before;
    });
    return corners.map((vertex) => ({ x: vertex % this.#columns, y: Math.floor(vertex / this.#columns) }));
  }
}

/** A queue by whole numbers: the smallest first, the earliest first among equals. */
class Buckets {
  readonly #buckets: (number[] | undefined)[] = [];
  #at = 0;

  push(key: number, state: number): void {
    const bucket = this.#buckets[key];
    if (bucket) bucket.push(state);
    else this.#buckets[key] = [state];
    if (key < this.#at) this.#at = key;
  }

  pop(): { readonly key: number; readonly state: number } | undefined {
    for (; this.#at < this.#buckets.length; this.#at += 1) {
      const state = this.#buckets[this.#at]?.pop();
      if (state !== undefined) return { key: this.#at, state };
    }
    return undefined;
  }
}
