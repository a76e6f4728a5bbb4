// Texts of the view `organisation`.

export const organisation = {} as const satisfies Record<string, readonly [en: string, zh: string]>
