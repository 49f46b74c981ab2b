/** Filter of events: all conditions must hold. */
export interface Filter {
  /** `type:tool.failed`: the type begins with it. */
  readonly types: readonly string[];
  /** `tool:Exec`: a field of the record has this value. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** Words, or "several words", that are in the type or in the data. In lower case. */
  readonly texts: readonly string[];
  /** Words of `-word`, which are in neither. */
  readonly without: readonly string[];
}

/** Fields of a record that the filter reads. */
export interface Filtered {
  readonly type: string;
  readonly data: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Reads `type:tool. tool:Exec "no such file" -retry`. Any text is valid: an unknown term is a word. */
export function parseFilter(text: string): Filter {
  const types: string[] = [];
  const fields: [string, string][] = [];
  const texts: string[] = [];
  const without: string[] = [];
  for (const [whole, name, quotedValue, value, quoted] of text.matchAll(
    /(?:([A-Za-z]\w*):(?:"([^"]*)"|(\S+)))|"([^"]*)"|\S+/g,
  )) {
    const given = quotedValue ?? value;
    if (name !== undefined && given !== undefined) {
      if (name === 'type') types.push(given.toLowerCase());
      else fields.push([name, given.toLowerCase()]);
    } else if (quoted !== undefined) texts.push(quoted.toLowerCase());
    else if (/^-./.test(whole)) without.push(whole.slice(1).toLowerCase());
    else texts.push(whole.toLowerCase());
  }
  return { types, fields, texts: texts.filter((each) => each !== ''), without };
}

export function matches({ types, fields, texts, without }: Filter, record: Filtered): boolean {
  const type = record.type.toLowerCase();
  if (types.length > 0 && !types.some((each) => type.startsWith(each))) return false;
  if (!fields.every(([name, value]) => fieldIs(record.fields, name, value))) return false;
  if (texts.length === 0 && without.length === 0) return true;
  const all = `${type} ${record.data.toLowerCase()}`;
  return texts.every((each) => all.includes(each)) && !without.some((each) => all.includes(each));
}

/** Compares a field, also one of `data`. Its name may be in any case. */
function fieldIs(fields: Readonly<Record<string, unknown>>, name: string, value: string): boolean {
  const inner = fields['data'];
  const known = [...Object.entries(fields), ...(typeof inner === 'object' && inner ? Object.entries(inner) : [])];
  return known.some(
    ([key, each]) => key.toLowerCase() === name.toLowerCase() && String(each).toLowerCase().includes(value),
  );
}
