import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import * as v from 'valibot';
import { AtomicFile, readJson } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { type MoveInput, MoveRecord } from '../../protocol/index.ts';
import { hubError } from '../errors.ts';
import { type Places, placeWords } from './ends.ts';
import { MoveRun, type MoveRunOptions, type StoredMove } from './run.ts';

/** Moves under way, and ended ones that are listed. */
const maxActive = 10;
const maxEnded = 20;

const Entry = v.object({
  ...v.omit(MoveRecord, ['sentBytes', 'totalBytes', 'entries']).entries,
  isOffered: v.boolean(),
  isCancelled: v.boolean(),
});
const Stored = v.object({ version: v.literal(1), moves: v.pipe(v.array(Entry), v.maxLength(1_000)) });

export interface MovesOptions extends Places, Pick<MoveRunOptions, 'observe'> {
  readonly statePath: string;
  readonly logger: Logger;
  readonly seed: () => number;
}

/** Moves of conversations that this Hub leads, in `moves.json` (0600, atomic). A move continues under the next Hub. */
export class Moves {
  readonly #options: MovesOptions;
  readonly #file: AtomicFile;
  readonly #runs = new Map<string, MoveRun>();
  readonly #ended: MoveRecord[] = [];

  constructor(options: MovesOptions) {
    this.#options = options;
    this.#file = new AtomicFile(join(options.statePath, 'moves.json'));
  }

  /** Continues the moves of an earlier Hub. */
  open(): void {
    const read = readJson(this.#file.path, Stored);
    if (read.kind === 'invalid')
      this.#options.logger.warn('the record of moves cannot be used', { problem: read.problem });
    if (read.kind !== 'ok') return;
    for (const stored of read.value.moves) {
      if (stored.state === 'moved' || stored.state === 'cancelled') {
        const { isOffered: _, isCancelled: __, ...record } = stored;
        this.#ended.push({ ...record, sentBytes: 0, totalBytes: 0, entries: 0 });
      } else this.#run(stored);
    }
  }

  /** Resolves when the move is on disk: from then on it outlives this Hub. @throws HttpError `moveRefused` */
  async start({ threadId, from, to }: MoveInput): Promise<MoveRecord> {
    if (placeWords(from) === placeWords(to))
      throw hubError('moveRefused', 'Source and target are the same. Name another directory or host.');
    const active = [...this.#runs.values()].map((run) => run.record());
    const known = active.find((each) => each.threadId === threadId);
    if (known)
      throw hubError(
        'moveRefused',
        `A move of the conversation is already active: ${known.state}. See "oratorio move --list".`,
        { ...known },
      );
    if (active.length >= maxActive)
      throw hubError('moveRefused', `${maxActive} moves are active, which is the limit. Wait until one ends.`);
    const moveId = `move_${randomBytes(8).toString('hex')}`;
    const run = this.#run({
      ...{ moveId, threadId, from, to, state: 'asking', reason: null },
      ...{ startedAt: new Date().toISOString(), isOffered: false, isCancelled: false },
    });
    await this.#save();
    return run.record();
  }

  list(): readonly MoveRecord[] {
    return [...this.#ended, ...[...this.#runs.values()].map((run) => run.record())];
  }

  /**
   * Goes back, unless the target already has the conversation. Resolves when the request is on disk, so that the next Hub goes back too.
   * @throws HttpError `notFound`
   */
  async cancel(moveId: string): Promise<MoveRecord> {
    const run = this.#runs.get(moveId);
    if (run) {
      run.send({ type: 'MOVE.CANCEL' });
      await this.#save();
    }
    const record = run?.record() ?? this.#ended.find((each) => each.moveId === moveId);
    if (!record) throw hubError('notFound', 'There is no such move. List the moves: oratorio move --list');
    return record;
  }

  /** Leaves all moves to the next Hub. */
  close(): void {
    for (const run of this.#runs.values()) run.stop();
  }

  #run(stored: StoredMove): MoveRun {
    const { registry, fleet, observe, seed, logger } = this.#options;
    const run = new MoveRun({
      ...{ registry, fleet, observe, stored, seed: seed() },
      save: () => this.#save(),
      onEnd: (record) => {
        this.#runs.delete(record.moveId);
        this.#ended.push(record);
        this.#ended.splice(0, this.#ended.length - maxEnded);
        const { threadId, state, reason } = record;
        logger.info('a move of a conversation has ended', { threadId, state, reason });
        // If this fails, the next Hub asks both places and ends the move again.
        void this.#save().catch((error: unknown) => logger.warn('the record of moves cannot be written', { error }));
      },
    });
    this.#runs.set(stored.moveId, run);
    run.start();
    return run;
  }

  #save(): Promise<void> {
    const ended = this.#ended.map(({ sentBytes: _, totalBytes: __, entries: ___, ...record }) => ({
      ...{ ...record, isOffered: true, isCancelled: record.state === 'cancelled' },
    }));
    const moves = [...ended, ...[...this.#runs.values()].map((run) => run.stored())];
    return this.#file.write(`${JSON.stringify({ version: 1, moves })}\n`);
  }
}
