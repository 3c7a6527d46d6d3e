'use strict';
const of = (...operation) => ({ show: { operation } });
exports.Crm = class Crm {
    description = {
        displayName: 'CRM', name: 'crm', version: 1, inputs: ['main'], outputs: ['main'],
        properties: [
            { name: 'operation', type: 'options', default: 'add', options: [{ name: 'Add', value: 'add' }, { name: 'Tag', value: 'tag' }, { name: 'Sign In', value: 'signIn' }] },
            { name: 'email', type: 'string', required: true, default: '', displayOptions: of('add', 'tag', 'signIn') },
            { name: 'list', type: 'options', typeOptions: { loadOptionsMethod: 'getLists' }, default: '', displayOptions: of('add') },
            { name: 'more', type: 'collection', default: {}, displayOptions: of('add'), options: [
                { name: 'company', type: 'string', default: '' }, { name: 'employees', type: 'number', default: 0 }] },
            { name: 'fields', type: 'fixedCollection', typeOptions: { multipleValues: true }, default: {}, displayOptions: of('add'), options: [
                { name: 'field', values: [{ name: 'key', type: 'string', default: '' }, { name: 'value', type: 'string', default: '' }] }] },
            { name: 'tags', type: 'string', default: '', displayOptions: of('tag') },
        ],
    };
    methods = { loadOptions: { async getLists() {
        const lists = await this.helpers.httpRequest({ method: 'GET', url: 'https://crm.example/lists', json: true });
        return lists.map(({ id, name }) => ({ name, value: id }));
    } } };
    async execute() {
        const get = (name, other) => this.getNodeParameter(name, 0, other), operation = get('operation'), email = get('email');
        let request;
        if (operation === 'add') {
            const body = { email, list: get('list'), ...get('more', {}) };
            const fields = (get('fields', {}).field || []).map(({ key, value }) => ({ name: key, value }));
            if (fields.length) body.fields = fields;
            request = { method: 'POST', uri: 'https://crm.example/contacts', body, json: true };
        } else if (operation === 'tag') {
            request = { method: 'PATCH', uri: 'https://crm.example/contacts', qs: { email }, body: { tags: get('tags').split(',') }, json: true };
        } else {
            request = { method: 'POST', uri: 'https://crm.example/sessions', form: { email, remember: 'yes' }, json: true };
        }
        return [this.helpers.returnJsonArray(await this.helpers.request(request))];
    }
};
