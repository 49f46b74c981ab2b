/** Colours of code; `code.css` has them for light and dark. */
export type Colour = 'comment' | 'string' | 'number' | 'keyword' | 'name' | 'type' | 'added' | 'removed';

/** Colours by the first word of a scope of highlight.js; other scopes have the colour of plain code. */
const byScope: Readonly<Record<string, Colour>> = {
  comment: 'comment',
  quote: 'comment',
  meta: 'comment',
  doctag: 'comment',
  string: 'string',
  regexp: 'string',
  char: 'string',
  link: 'string',
  number: 'number',
  literal: 'number',
  symbol: 'number',
  bullet: 'number',
  keyword: 'keyword',
  'selector-tag': 'keyword',
  title: 'name',
  name: 'name',
  attr: 'name',
  attribute: 'name',
  property: 'name',
  section: 'name',
  variable: 'name',
  'selector-class': 'name',
  'selector-id': 'name',
  'template-variable': 'name',
  type: 'type',
  built_in: 'type',
  class: 'type',
  addition: 'added',
  deletion: 'removed',
};

/** Colour of a scope; null: the colour of plain code. */
export function colourOf(scope: string): Colour | null {
  const [first = ''] = scope.replace(/^language:/, '').split('.');
  if (scope === 'title.class') return 'type';
  return Object.hasOwn(byScope, first) ? (byScope[first] ?? null) : null;
}
