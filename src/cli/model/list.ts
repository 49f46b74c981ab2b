import type { ModelInfo, ModelList } from '../../agent/index.ts';
import { messageOf } from '../../lib/index.ts';
import { priceText } from './in-force.ts';

export const listHeading = ['', 'MODEL', 'WINDOW', 'ANSWER', 'REASONS', 'PRICE PER MILLION'] as const;

const compact = new Intl.NumberFormat('en-GB', { notation: 'compact', maximumFractionDigits: 1 });
const tokens = (count: number | undefined): string => (count === undefined ? '?' : compact.format(count));

/** Cells of a list of models. @param current the model in force */
export function listRows(models: readonly ModelInfo[], current: string): readonly (readonly string[])[] {
  return models.map(({ id, contextWindow, maxOutputTokens, reasoning, price }) => [
    id === current ? '*' : '',
    id,
    tokens(contextWindow),
    tokens(maxOutputTokens),
    reasoning ? 'yes' : '',
    priceText(price),
  ]);
}

/** Reason why a provider did not list its models; undefined: it did. */
export const problemOf = (list: ModelList): string | undefined =>
  'error' in list
    ? `${list.provider} cannot list its models: ${messageOf(list.error)}${
        list.catalogued.length > 0 ? ' These are those of the catalogue.' : ''
      }`
    : undefined;
