/** Answers of the mock upstream by model; the load clients know it too, and check every letter. */
export interface MockAnswer {
  /** Pieces of a stream, one token each as models make them. */
  readonly chunks: number;
  /** Between two pieces; 0: as fast as possible. The first comes at once. */
  readonly paceMs: number;
  /** Pieces of a stream that leave in one write; without a pace only. */
  readonly atOnce: number;
}

export const mockAnswers = {
  /** The whole answer exists before the request. */
  instant: { chunks: 16, paceMs: 0, atOnce: 16 },
  /** One write per piece, as models do, but without any thinking. */
  burst: { chunks: 200, paceMs: 0, atOnce: 1 },
  /** For the time to the first piece while others stream: a model's pace. The fewer at once, the shorter: there must be enough. */
  paced: { chunks: 50, paceMs: 20, atOnce: 1 },
  short: { chunks: 10, paceMs: 20, atOnce: 1 },
  brief: { chunks: 4, paceMs: 10, atOnce: 1 },
} as const satisfies Record<string, MockAnswer>;

export type MockModel = keyof typeof mockAnswers;

/** Asks for two tools, one after the other, and then says this. */
export const toolsModel = 'tools';
export const toolsText = 'Both tools have run.';

/** Answers beyond every limit of a turn: 40 MB of text, 50,000 calls. */
export const floodModels = ['flood-text', 'flood-calls'] as const;

const words = [' agent', ' reads', ' files', ' tests', ' build', ' again', ' until', ' clean'];

/** Piece number `index`. All are of one length, and no letter of them needs an escape in JSON. */
export const pieceOf = (index: number): string => words[index % words.length] ?? '';

export function textOf(model: MockModel): string {
  return Array.from({ length: mockAnswers[model].chunks }, (_, index) => pieceOf(index)).join('');
}
