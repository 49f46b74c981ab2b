import { Config } from './schema.ts';

/** The configuration file as JSON Schema (draft 7), for editors and the dashboard: what a user may write. */
export async function configJsonSchema(): Promise<Record<string, unknown>> {
  const { toJsonSchema } = await import('@valibot/to-json-schema');
  return { ...toJsonSchema(Config, { typeMode: 'input', errorMode: 'ignore' }), title: 'Oratorio configuration' };
}
