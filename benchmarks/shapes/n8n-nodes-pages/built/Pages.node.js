'use strict';
exports.Pages = class Pages {
    description = {
        displayName: 'Pages', name: 'pages', version: 1, inputs: ['main'], outputs: ['main'],
        properties: [
            { name: 'operation', type: 'options', default: 'getAll', options: [{ name: 'Get Many', value: 'getAll' }] },
            { name: 'returnAll', type: 'boolean', default: false },
            { name: 'limit', type: 'number', default: 50, displayOptions: { show: { returnAll: [false] } } },
        ],
    };
    async execute() {
        const found = [], all = this.getNodeParameter('returnAll', 0);
        const qs = all ? { limit: 100 } : { limit: this.getNodeParameter('limit', 0) };
        do {
            const page = await this.helpers.httpRequest({ method: 'GET', url: 'https://pages.example/v1/entries', qs, json: true });
            found.push(...page.entries);
            qs.cursor = page.next_cursor;
        } while (all && qs.cursor);
        return [this.helpers.returnJsonArray(found)];
    }
};
